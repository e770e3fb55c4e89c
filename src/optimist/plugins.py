"""A user's own agents, environments, formats, torsos and loggers, found by one mechanism.

The package's own lie in their folders and are looked up there first. Everything else has one of two names:
that of an entry point (group `optimist.agents`, `optimist.environments`, ...), or an address, `module:Name`
or `/folder/file.py:Name`. Another process finds the same by the same name. The current folder is not
searched: it may hold anybody's files.
"""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from optimist.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

KINDS = {
    "agents": "agent",
    "environments": "environment family",
    "formats": "format",
    "torsos": "torso",
    "loggers": "logger",
}
PACKAGES = str(Path(__file__).resolve().parents[1])  # the folder that this package lies in


def names(kind: str) -> list[str]:
    """The names that installed packages add by entry points."""
    return sorted(_entries(kind))


def find(kind: str, name: str, known: Iterable[str] = ()) -> Any:
    """What a person means by a name that is not one of the package's own, which are `known`."""
    if name in _entries(kind):
        entry = _entries(kind)[name]
        return _attribute(f"{entry.module}:{entry.attr}" if entry.attr else entry.module)
    if is_address(name):
        return _attribute(name)
    hint = did_you_mean(name, [*known, *names(kind)])
    own = ", or your own as module:Name" if hint.startswith("known") else ""
    raise UsageError(f'there is no {KINDS[kind]} "{name}": {hint}{own}')


def is_address(name: str) -> bool:
    return ":" in name


def address(kind: str, thing: type) -> str:
    """The name by which any process finds this class; UsageError where another process would find none."""
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
    """Import these modules, because a person named them: what a folder names in them may be used then."""
    for module in modules:
        _module(module.partition(":")[0])


def trusted(kind: str, name: str) -> bool:
    """May a name be used that was found in somebody's folder? Not if that imports a module that nobody asked
    for: one that is neither an entry point's nor imported already."""
    registered = name in [entry.value for entry in _entries(kind).values()]
    return not is_address(name) or registered or _key(name.partition(":")[0]) in sys.modules


def check_trusted(kind: str, name: str) -> None:
    """Raise DataError if the name that a folder has is not trusted."""
    if not trusted(kind, name):
        module = name.partition(":")[0]
        raise DataError(
            f'the folder names the {KINDS[kind]} "{name}", which imports "{module}"; if you trust it: '
            f'--allow {module}, in Python allow=["{module}"]'
        )


def search_path() -> list[str]:
    """Where this process and its children look for modules: not in the current folder, unless the user named
    it (in PYTHONPATH, or as the folder of the script that runs) or this package lies there."""
    try:
        here = os.path.realpath(os.getcwd())
    except FileNotFoundError:  # it was removed
        return [entry for entry in sys.path if entry]
    named = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), _script_folder(), PACKAGES]
    keep = here in [os.path.realpath(folder) for folder in named]
    return [entry or here for entry in sys.path if keep or os.path.realpath(entry) != here]


def _script_folder() -> str:
    """Of `python folder/script.py`; `python -m` and `python -c` have none."""
    main = sys.modules["__main__"]
    is_script = getattr(main, "__spec__", None) is None and hasattr(main, "__file__")
    return os.path.dirname(str(main.__file__)) if is_script else PACKAGES


def _entries(kind: str) -> "dict[str, EntryPoint]":
    return _entries_on(f"optimist.{kind}", tuple(sys.path))


@cache
def _entries_on(group: str, path: tuple[str, ...]) -> "dict[str, EntryPoint]":
    """`path` is only a key: another search path may lead to other packages."""
    from importlib.metadata import entry_points  # help and most commands do without

    with _without_current_folder():
        return {entry.name: entry for entry in entry_points(group=group)}


def _attribute(place: str) -> Any:
    """Of "module:Name" the object, of "module" the module."""
    module, _, path = place.partition(":")
    found: Any = _module(module)
    for part in filter(None, path.split(".")):
        if not hasattr(found, part):
            raise UsageError(f'{module} has no "{path}": {did_you_mean(path, _public(found))}')
        found = getattr(found, part)
    return found


def _public(thing: Any) -> list[str]:
    return [name for name in vars(thing) if not name.startswith("_")]


def _module(name: str) -> ModuleType:
    if _key(name) in sys.modules:
        return sys.modules[_key(name)]
    if name.endswith(".py"):
        return _file(name)
    try:
        with _without_current_folder():
            return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if not f"{name}.".startswith(f"{problem.name}."):
            raise  # something that the module itself needs
        raise UsageError(
            f'there is no module "{name}": install its package, or name its file, /folder/file.py:Name'
        ) from None


def _key(module: str) -> str:
    """Its name in sys.modules. That of a file is its path, so that its classes know where they are from."""
    return os.path.realpath(module) if module.endswith(".py") else module


def _file(path: str) -> ModuleType:
    if not os.path.isabs(path) or not os.path.isfile(path):
        raise UsageError(f'"{path}" is not a file: write its whole path, /folder/file.py:Name')
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
    """Would another process with this one's search path import the same file?"""
    if module.endswith(".py"):
        return os.path.isfile(module)
    outermost = sys.modules.get(module.partition(".")[0])
    if module == "__main__" or outermost is None:
        return False
    with _without_current_folder():  # not by importlib.util.find_spec, which answers from sys.modules
        specs = [finder.find_spec(outermost.__name__, None) for finder in sys.meta_path]
    found = next(filter(None, specs), None)
    return found is not None and found.origin == getattr(outermost, "__file__", None)


@contextlib.contextmanager
def _without_current_folder() -> Iterator[None]:
    kept = search_path()
    hidden = [entry for entry in sys.path if entry not in kept]
    sys.path[:] = kept
    try:
        yield
    finally:
        sys.path[:0] = hidden
