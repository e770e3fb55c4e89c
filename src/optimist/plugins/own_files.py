"""The files of the user's own code: which they are, and their hashes.

A run records the hashes of its agent, torso and environment, so that an edit does not go unnoticed.
"""

import ast
import contextlib
import hashlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from optimist import plugins

INSTALLED = {"site-packages", "dist-packages"}  # folders of packages that others wrote


def hashes(kind: str, name: str) -> dict[str, str]:
    """`hashes_of` the module in which the user's own class is; empty for the package's own classes."""
    return hashes_of(plugins.module_of(kind, name))


def hashes_of(name: str) -> dict[str, str]:
    """Hashes of the file of this module and of the files that it imports from its package or its folder, by
    the modules' names; empty if it is not imported."""
    module = sys.modules.get(name)
    if module is None or _source(module) is None:
        return {}
    found, waiting, home = dict[str, str](), [module], _home(module)
    while waiting:
        each = waiting.pop()
        label, file = f"code of {each.__name__}", _source(each)
        if label not in found and file and (each is module or _is_own(file, home)):
            content = file.read_bytes()
            found[label] = hashlib.sha256(content).hexdigest()[:12]
            waiting += _imports(content, each)
    return found


def _source(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file and os.path.isfile(file) else None


def _home(module: ModuleType) -> Path:
    """The folder of the package that the module is in, or of the module."""
    outermost = sys.modules.get(module.__name__.partition(".")[0], module)
    return Path(str(getattr(outermost, "__file__", None) or module.__file__)).parent


def is_own(name: str) -> bool:
    """Whether an imported module is the user's own file: of neither an installed package nor this one."""
    module = sys.modules.get(name)
    file = module and _source(module)
    if not module or not file or name == "__main__" or INSTALLED & set(file.parts):
        return False
    return _is_own(file, _home(module))


def _is_own(file: Path, home: Path) -> bool:
    """Whether a file in `home` is the user's: of neither an installed package nor this one."""
    if not file.is_relative_to(home) or file.is_relative_to(Path(__file__).parents[1]):
        return False
    inside = file.relative_to(home) if (home / "__init__.py").exists() else file
    return not INSTALLED & set(inside.parts)


def _imports(content: bytes, module: ModuleType) -> list[ModuleType]:
    """The modules that this source of the module imports, as far as they are imported."""
    names = list[str]()
    with contextlib.suppress(SyntaxError, ValueError, ImportError):
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                base = importlib.util.resolve_name(base, module.__package__)
                names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return [sys.modules[name] for name in names if name in sys.modules]
