"""Where a policy acts: lanes of an environment behind one interface, found by the name "family/game".

What makes a game another game is part of its name, as in an address: "atari/Breakout?no_ops=30". So it
travels with a dataset and a run to wherever the game is played again.
"""

import importlib
import inspect
import pkgutil
import sys
from dataclasses import asdict, fields
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from optimist.data.transition import Spec
from optimist.errors import DataError, UsageError, did_you_mean


class Step(NamedTuple):
    """One step of every lane; arrays with a leading lane axis, frames single and unstacked.

    A step ends its episode as `terminal` or as `truncated`, never both. The two observations may be the
    same array where no episode ended: read them, do not write into them.
    """

    observation: np.ndarray  # what the lane acts on next: already reset where an episode ended
    reward: np.ndarray  # float32, unclipped
    terminal: np.ndarray
    truncated: np.ndarray
    next_observation: np.ndarray  # the true successor: the final observation where an episode ended


class Environment(Protocol):
    """`lanes` copies of one game that are stepped together and reset by themselves.

    One that is `resumable` (most have no such attribute) gives its whole state as arrays by `saved()`, and
    goes on from it after `restore()`; the arrays come from a file, so they are checked there."""

    name: str
    spec: Spec
    lanes: int

    def reset(self) -> np.ndarray:
        """Begin a new episode in every lane; the random streams go on, they do not start over."""
        ...

    def step(self, actions: Any) -> Step: ...

    def render(self) -> np.ndarray:
        """A picture of lane 0, uint8 (H, W, 3)."""
        ...

    def versions(self) -> dict[str, str]:
        """The packages that decide what happens in this environment."""
        ...

    def close(self) -> None: ...


def make(name: str, *, lanes: int = 1, seed: int = 0, processes: int | None = None, **options) -> Environment:
    """The environment called "family/game"; `options` are those of the family's own `make`. Simulators that
    leave other cores idle share their lanes out to `processes`, by the cores unless said; that changes
    nothing but the time it takes."""
    if lanes < 1 or seed < 0 or (processes is not None and processes < 1):
        raise UsageError(
            f"lanes={lanes}, seed={seed}, processes={processes}: at least one lane and process and a seed "
            "from 0 upwards, please"
        )
    from optimist.envs._workers import Split, usual_processes

    family, _ = _found(name)
    if not getattr(family, "ON_ONE_CORE", False):
        if processes not in (None, 1):
            raise UsageError(f"{base_name(name)} is not shared out to processes: leave processes out")
        processes = 1
    seeds, count = lane_seeds(seed, lanes), min(lanes, processes or usual_processes(lanes))
    return Split(name, seeds, options, count) if count > 1 else make_lanes(name, seeds, **options)


def make_lanes(name: str, seeds: list[int], **options) -> Environment:
    """The same in this process alone, one lane for each of these random streams."""
    family, game = _found(name)
    options = {**_options_in(name), **options}
    _refuse_unknown_options(family, options)
    return family.make(game, seeds=seeds, **options)


def lane_seeds(seed: int, lanes: int) -> list[int]:
    """One independent seed per lane."""
    return [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(lanes)]


def from_data(name: Any) -> str:
    """The environment that a dataset or a run names. Whoever wrote the file may have meant harm: "gym/x:Id",
    which imports the module x, is taken only where x is imported already. A person may name any module."""
    if not isinstance(name, str):
        raise DataError(f"{name!r} is not the name of an environment; choose one with --environment")
    module, colon, _ = base_name(name).partition("/")[2].partition(":")
    if colon and module not in sys.modules:
        raise DataError(
            f'the data names the environment "{name}", which imports the module "{module}"; '
            f"if you trust it: --environment {base_name(name)}"
        )
    return name


def base_name(name: str) -> str:
    """The game without its options."""
    return name.partition("?")[0]


def options_of(name: str) -> Any:
    """The options of a named environment as a record, or None where its family has none."""
    options = getattr(_found(name)[0], "Options", None)
    return options and options(**_options_in(name))


def families_options() -> list[Any]:
    """The usual options of every family that has some."""
    return [family.Options() for family in map(_family, _families()) if _has_options(family)]


def named(name: str, options: Any) -> str:
    """The name that says these options, as far as they differ from the family's own."""
    usual = asdict(type(options)())
    changed = {field: value for field, value in asdict(options).items() if value != usual[field]}
    said = "&".join(f"{field}={_as_word(value)}" for field, value in changed.items())
    return base_name(name) + (f"?{said}" if said else "")


def available() -> list[str]:
    """Every name that is known to work once its family's package is installed."""
    return [f"{name}/{game}" for name in _families() for game in _family(name).games()]


def _found(name: str) -> tuple[ModuleType, str]:
    """The family and the game of a name."""
    family, slash, game = base_name(name).partition("/")
    if not slash:
        raise UsageError(f'"{name}" is not of the form family/game: {_families_with(name)}')
    if family not in _families():
        known = did_you_mean(family, _families())
        raise UsageError(f'no environment family "{family}" in "{name}": {known}')
    return _family(family), game


def _families_with(game: str) -> str:
    """' did you mean atari/Breakout or minatar/breakout?' to end a message about a name without a family."""
    same = [name for name in available() if name.partition("/")[2].lower() == game.lower()]
    *others, last = same or [""]
    before = f"{', '.join(others)} or " if others else ""
    return f"did you mean {before}{last}?" if same else did_you_mean(game, available())


def _options_in(name: str) -> dict[str, Any]:
    """The options that are said in a name, each in the type of its field."""
    query = name.partition("?")[2]
    if not query:
        return {}
    family, _ = _found(name)
    usual = {field.name: field.default for field in fields(family.Options)} if _has_options(family) else {}
    said = [part.partition("=") for part in query.split("&")]
    for word, _, _ in said:
        if word not in usual:
            hint = did_you_mean(word, usual) if usual else f"write {base_name(name)}, it has none"
            raise UsageError(f'no environment option "{word}" in "{name}": {hint}')
    return {word: _read(f"{name}: {word}", text, type(usual[word])) for word, _, text in said}


def _has_options(family: ModuleType) -> bool:
    return hasattr(family, "Options")


def _read(where: str, text: str, kind: type) -> Any:
    try:
        return {"yes": True, "no": False}[text] if kind is bool else kind(text)
    except (KeyError, ValueError):
        wanted = {bool: "yes or no", int: "a whole number", float: "a number"}[kind]
        raise UsageError(f'{where} is "{text}": write {wanted}') from None


def _as_word(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _families() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]


def _family(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def _refuse_unknown_options(family: ModuleType, options: dict) -> None:
    parameters = inspect.signature(family.make).parameters.values()
    known = {parameter.name for parameter in parameters} - {"game", "seeds", "options"}
    if _has_options(family):
        known |= {field.name for field in fields(family.Options)}
    elif any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    for option in options.keys() - known:
        raise UsageError(f'no environment option "{option}": {did_you_mean(option, known)}')
