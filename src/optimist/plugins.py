"""One look-up for what has a name: agents, environments, formats, estimators, figures, engines and the like.

`find(kind, name)` gives the thing. The package's own are the files of one folder for each kind. A user's
plug-in has one of two names: that of an entry point (group `optimist.agents`, `optimist.engines`, ...), or an
address, `module:Name` or `/folder/file.py:Name`. The same name leads to the same object in every process. The
current folder is not searched, because it may hold files that the user does not trust.

A run records the hashes of the files of its agent, torso and environment, so that an edit does not go
unnoticed.
"""

import ast
import contextlib
import hashlib
import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from optimist.errors import DataError, UsageError, did_you_mean, in_one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Kind(NamedTuple):
    """What things of one kind are called, where the package's own are, and what each of them has."""

    word: str  # in messages
    folder: str = ""  # each file or folder in it is one of the package's own, unless its name begins with _
    needs: tuple[str, ...] = ()  # the functions that a user's own must have
    is_class: bool = False  # the file one_two.py holds the class OneTwo; otherwise the module is the thing


KINDS = {  # by the group of their entry points, without "optimist."
    "agents": Kind("agent", "agents", is_class=True),
    "environments": Kind("environment family", "envs", needs=("make",)),
    "formats": Kind("format", "data/formats", needs=("detect", "open", "ReadOptions")),
    "torsos": Kind("torso"),
    "loggers": Kind("logger", "training/loggers", needs=("add", "close"), is_class=True),
    "estimators": Kind("estimator", "choosing/estimators", needs=("scores",), is_class=True),
    "figures": Kind("figure", "studies/report/figures"),
    "engines": Kind("engine", "studies/engines", needs=("run",)),
}
INSTALLED = {"site-packages", "dist-packages"}  # folders of packages that others wrote
_named: set[str] = set()  # the modules of the plug-ins that this process uses
_allowed_files: dict[str, str] = {}  # by their names: a run that was moved has the path of another machine
PACKAGES = str(Path(__file__).resolve().parents[1])  # the folder that contains this package


def own(kind: str) -> list[str]:
    """The names of the package's own: the files of their folder, except those that begin with _."""
    folder = KINDS[kind].folder and os.path.join(PACKAGES, "optimist", KINDS[kind].folder)
    files = pkgutil.iter_modules([folder]) if folder else ()
    return sorted(file.name for file in files if not file.name.startswith("_"))


def names(kind: str) -> list[str]:
    """The names that installed packages add by entry points."""
    return sorted(_entries(kind))


def find(kind: str, name: str, known: Iterable[str] = ()) -> Any:
    """The thing of this name: the package's own, that of an entry point, or that at an address. UsageError if
    there is none, with a hint at the names of entry points and the `known` ones, by default the package's."""
    what = KINDS[kind]
    if name in own(kind):
        module = importlib.import_module(f"optimist.{what.folder.replace('/', '.')}.{name}")
        return getattr(module, name.title().replace("_", "")) if what.is_class else module
    entry = _entries(kind).get(name)
    if not entry and not is_address(name):
        hint = did_you_mean(name, [*(known or own(kind)), *names(kind)])
        yours = ", or your own as module:Name" if hint.startswith("known") else ""
        raise UsageError(f'there is no {what.word} "{name}": {hint}{yours}')
    thing = _attribute(f"{entry.module}:{entry.attr or ''}" if entry else name)
    if not all(callable(getattr(thing, part, None)) for part in what.needs):
        article = "an" if what.word[0] in "aeiou" else "a"
        raise UsageError(f"{name} is not {article} {what.word}: it needs {' and '.join(what.needs)}")
    return thing


def is_address(name: str) -> bool:
    return ":" in name


def address(kind: str, thing: type) -> str:
    """The name by which any process finds this class; UsageError if other processes could not find it."""
    place = f"{thing.__module__}:{thing.__qualname__}"
    for name, entry in _entries(kind).items():
        if entry.value == place:
            return name
    if "<locals>" in thing.__qualname__ or not _is_found_elsewhere(thing.__module__):
        raise UsageError(
            f"no other process could load {place}: put the class into a file or a package that is installed "
            f"or on PYTHONPATH, and name it module:{thing.__name__}"
        )
    return place


def allow(modules: Iterable[str]) -> None:
    """Import these modules, because the user named them; folders may then refer to what is in them."""
    for module in (each.partition(":")[0] for each in modules):
        _module(module)
        if module.endswith(".py"):
            _allowed_files[os.path.basename(module)] = os.path.realpath(module)


def trusted(kind: str, name: str) -> bool:
    """Whether a name that was found in a folder may be used. It may not if that would import a new module:
    one that is neither an entry point's nor imported already."""
    registered = name in [entry.value for entry in _entries(kind).values()]
    return not is_address(name) or registered or _key(name.partition(":")[0]) in sys.modules


def check_trusted(kind: str, name: str) -> None:
    """Raise DataError if a name that was found in a folder is not trusted."""
    if trusted(kind, name):
        return
    module, named = name.partition(":")[0], f'the folder names the {KINDS[kind].word} "{name}"'
    if module.endswith(".py") and not os.path.isfile(module):
        file = os.path.basename(module)
        raise DataError(
            f"{named}, and that file is not here; if you trust it, name its place: --allow /folder/{file}, "
            f'in Python allow=["/folder/{file}"]'
        )
    raise DataError(
        f'{named}, which imports "{module}"; if you trust it: --allow {module}, in Python allow=["{module}"]'
    )


def failure(problem: BaseException) -> str | None:
    """The line about an error that arose in a module that the user named; None if it did not."""
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    own = [frame for frame in frames if frame.f_globals.get("__name__") in _named]
    if not own:
        return None
    where = f"{own[-1].f_globals['__name__']}:{own[-1].f_code.co_qualname}"
    what = f"{type(problem).__name__}: {in_one_line(str(problem).partition(chr(10))[0], 300)}"
    return f"{where} failed ({what}): mend it, and run the command again; --debug shows where"


def search_path() -> list[str]:
    """The folders in which this process and its children look for modules. The current folder is left out,
    unless the user named it (in PYTHONPATH, or as the folder of the script) or it contains this package."""
    try:
        here = os.path.realpath(os.getcwd())
    except FileNotFoundError:  # the current folder was removed
        return [entry for entry in sys.path if entry]
    named = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), _script_folder(), PACKAGES]
    keep = here in [os.path.realpath(folder) for folder in named]
    return [entry or here for entry in sys.path if keep or os.path.realpath(entry) != here]


def _script_folder() -> str:
    """The folder of `python folder/script.py`; PACKAGES for `python -m` and `python -c`, which have none."""
    main = sys.modules["__main__"]
    is_script = getattr(main, "__spec__", None) is None and hasattr(main, "__file__")
    return os.path.dirname(str(main.__file__)) if is_script else PACKAGES


def _entries(kind: str) -> "dict[str, EntryPoint]":
    return _entries_on(f"optimist.{kind}", tuple(sys.path))


@cache
def _entries_on(group: str, path: tuple[str, ...]) -> "dict[str, EntryPoint]":
    """`path` is only a key: another search path may lead to other packages."""
    from importlib.metadata import entry_points  # slow, and most commands do not need it

    with _without_current_folder():
        return {entry.name: entry for entry in entry_points(group=group)}


def _attribute(place: str) -> Any:
    """The object at "module:Name", or the module at "module"."""
    module, _, path = place.partition(":")
    thing: Any = _module(module)
    _named.add(thing.__name__)
    for part in filter(None, path.split(".")):
        if isinstance(thing, ModuleType) and not hasattr(thing, part):
            with contextlib.suppress(UsageError):
                _module(f"{thing.__name__}.{part}")  # importing a submodule makes it an attribute
        if not hasattr(thing, part):
            public = [name for name in vars(thing) if not name.startswith("_")]
            raise UsageError(f'{module} has no "{path}": {did_you_mean(path, public)}')
        thing = getattr(thing, part)
    return thing


def _module(name: str) -> ModuleType:
    if _key(name) in sys.modules:
        return sys.modules[_key(name)]
    missing = f'there is no module "{name}": install its package, or name its file, /folder/file.py:Name'
    if not name or name.startswith("."):
        raise UsageError(missing)
    try:
        if name.endswith(".py"):
            return _file(name)
        with _without_current_folder():
            return importlib.import_module(name)
    except UsageError:
        raise
    except Exception as problem:
        if isinstance(problem, ModuleNotFoundError) and f"{name}.".startswith(f"{problem.name}."):
            raise UsageError(missing) from None
        raise UsageError(
            f"{name} cannot be imported ({type(problem).__name__}: {problem}): mend it; --debug shows where"
        ) from problem


def _key(module: str) -> str:
    """The module's name in sys.modules; for a file it is the path, so that its classes have an address. In
    place of a file that is not here, the user may have allowed one of the same name."""
    if not module.endswith(".py"):
        return module
    moved = None if os.path.isfile(module) else _allowed_files.get(os.path.basename(module))
    return moved or os.path.realpath(module)


def _file(path: str) -> ModuleType:
    if not os.path.isabs(path):
        whole, problem = "/folder/file.py:Name", "is not a file"
        if os.path.isfile(path):
            whole, problem = os.path.abspath(path), "is not a whole path"
        raise UsageError(f'"{path}" {problem}: write its whole path, {whole}')
    if not os.path.isfile(path):  # such as that of a run from another machine
        raise UsageError(f'there is no file "{path}": put it there, or correct its path')
    spec = importlib.util.spec_from_file_location(_key(path), path)
    assert spec is not None and spec.loader is not None  # the name ends with .py
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        with _without_current_folder():
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _is_found_elsewhere(module: str) -> bool:
    """Whether another process with the same search path would import the same file."""
    if module.endswith(".py"):
        return os.path.isfile(module)
    outermost = sys.modules.get(module.partition(".")[0])
    if module == "__main__" or outermost is None:
        return False
    with _without_current_folder():  # not by importlib.util.find_spec, which answers from sys.modules
        specs = [finder.find_spec(outermost.__name__, None) for finder in sys.meta_path]
    spec = next(filter(None, specs), None)
    return spec is not None and spec.origin == getattr(outermost, "__file__", None)


@contextlib.contextmanager
def _without_current_folder() -> Iterator[None]:
    kept = search_path()
    hidden = [entry for entry in sys.path if entry not in kept]
    sys.path[:] = kept
    try:
        yield
    finally:
        sys.path[:0] = hidden


def hashes(kind: str, name: str) -> dict[str, str]:
    """`hashes_of` the module in which the user's own class is; empty for the package's own classes."""
    entry = _entries(kind).get(name.partition("/")[0])  # the family, if it is an environment
    if not entry and not is_address(name):
        return {}
    return hashes_of(entry.module if entry else _key(name.partition(":")[0]))


def hashes_of(name: str) -> dict[str, str]:
    """Hashes of the file of this module and of the files that it imports from its package or its folder, by
    the modules' names; empty if it is not imported."""
    module = sys.modules.get(name)
    if module is None or _source(module) is None:
        return {}
    marks, waiting = dict[str, str](), [module]
    while waiting:
        each = waiting.pop()
        label, file = f"code of {each.__name__}", _source(each)
        if label not in marks and file and (each is module or _is_users(file, module)):
            content = file.read_bytes()
            marks[label] = hashlib.sha256(content).hexdigest()[:12]
            waiting += _imports(content, each)
    return marks


def _source(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file and os.path.isfile(file) else None


def is_users(name: str) -> bool:
    """Whether an imported module is the user's own file: of neither an installed package nor this one."""
    module = sys.modules.get(name)
    file = module and _source(module)
    if not module or not file or name == "__main__" or INSTALLED & set(file.parts):
        return False
    return _is_users(file, module)


def _is_users(file: Path, module: ModuleType) -> bool:
    """Whether a file is the user's: in the folder of the package that the module is in, or of the module, and
    of neither an installed package nor this one."""
    outermost = sys.modules.get(module.__name__.partition(".")[0], module)
    home = Path(str(getattr(outermost, "__file__", None) or module.__file__)).parent
    if not file.is_relative_to(home) or file.is_relative_to(os.path.join(PACKAGES, "optimist")):
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
