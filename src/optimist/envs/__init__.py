"""Environments: lanes of one game behind one interface, found by the name "family/game".

A family is a file of this folder or a user's plug-in, and has games. Options that change a game are part of
its name, as in an address: "atari/Breakout?no_ops=30". So datasets and runs store them with the name.
"""

import inspect
import os
import shlex
import sys
from contextlib import closing
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from optimist import plugins
from optimist.data.transition import Spec
from optimist.envs._environment import Environment, Lane, Lanes, Step, named_failures
from optimist.errors import DataError, UsageError, closest, did_you_mean

__all__ = ["Environment", "Lane", "Lanes", "Step"]  # what a family of your own needs


def make(name: str, *, lanes: int = 1, seed: int = 0, processes: int | None = None, **options) -> Environment:
    """The environment called "family/game"; `options` are those of the family's `make`. The lanes of a
    simulator that uses one core are divided among `processes`, by default by the number of cores. The number
    of processes affects only the speed."""
    if lanes < 1 or seed < 0 or (processes is not None and processes < 1):
        raise UsageError(
            f"lanes={lanes}, seed={seed}, processes={processes}: lanes and processes must be at least 1, "
            "and seed at least 0"
        )
    from optimist.envs._workers import Split, usual_processes

    family, _ = family_and_game(name)
    if not getattr(family, "ON_ONE_CORE", False):
        if processes not in (None, 1):
            raise UsageError(f"{base_name(name)} cannot be divided among processes: omit processes")
        processes = 1
    seeds, count = lane_seeds(seed, lanes), min(lanes, processes or usual_processes(lanes))
    return Split(name, seeds, options, count) if count > 1 else make_lanes(name, seeds, **options)


def make_lanes(name: str, seeds: list[int], **options) -> Environment:
    """The environment in this process alone, with one lane for each of these seeds."""
    family, game = family_and_game(name)
    options = {**_options_in(name), **options}
    parameters = inspect.signature(family.make).parameters.values()
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    if hasattr(family, "Options") or not takes_any:
        known = {each.name for each in parameters} - {"game", "seeds", "options"} | {*_defaults(family)}
        for option in options.keys() - known:
            raise UsageError(f'no environment option "{option}": {did_you_mean(option, known)}')
    with named_failures(base_name(name)):
        return family.make(game, seeds=seeds, **options)


def spec_of(name: str) -> Spec:
    """The frames and actions of the environment, which is made and closed to find out."""
    play = make(name)
    play.close()
    return play.spec


def gives_masks(play: Environment) -> bool:
    """Does a new environment say which actions can be chosen? Its first observation tells."""
    if play.spec.discrete and hasattr(play, "allowed"):
        with named_failures(play.name):
            play.reset()
    return getattr(play, "allowed", None) is not None


def has_masks(name: str) -> bool:
    """The same of an environment that is made and closed to find out."""
    with closing(make(name)) as play:
        return gives_masks(play)


def lane_seeds(seed: int, lanes: int) -> list[int]:
    """One independent seed per lane."""
    return [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(lanes)]


def from_data(name: Any) -> str:
    """Check the environment name of a dataset or a run, and return it. The file may be malicious: names that
    import a module x, "x:Family" and "gym/x:Id", are accepted only if x is imported already. The user may
    name any module."""
    if not isinstance(name, str):
        raise DataError(f"{name!r} is not the name of an environment; choose one with --environment")
    module, colon, rest = _address(name)
    known = plugins.trusted("environments", f"{module}{colon}{rest.partition('/')[0]}")
    if not colon:
        module, colon, _ = base_name(name).partition("/")[2].partition(":")
        known = not colon or module in sys.modules
    if not known:
        raise DataError(  # with its options: without them it is another game
            f'the data names the environment "{name}", which imports the module "{module}"; '
            f"if you trust it: --environment {shlex.quote(name)}, in Python environment={name!r}"
        )
    return name


def code(name: str) -> dict[str, str]:
    """Hashes of the user's own files that define this environment, by "code of module"."""
    family, game = base_name(name).partition("/")[::2]
    ours = plugins.find("environments", family) if family in plugins.own("environments") else None
    modules = getattr(ours, "modules", None)
    if modules is None:
        return plugins.hashes("environments", name)
    own = filter(plugins.is_users, modules(game))
    return {label: mark for module in own for label, mark in plugins.hashes_of(module).items()}


def base_name(name: str) -> str:
    """The name without its options."""
    return name.partition("?")[0]


def game_of(name: str) -> str:
    """The name without its family, and with its options: "Breakout?no_ops=30" of "atari/Breakout?no_ops=30".
    The path of a user's file is no part of it."""
    _, colon, rest = _address(name)
    family = base_name(name).removesuffix(rest) if colon else ""
    return name.removeprefix(family).partition("/")[2]


def options_of(name: str) -> Any:
    """The options of a named environment, or None if its family has none."""
    options = getattr(family_and_game(name)[0], "Options", None)
    return options and options(**_options_in(name))


def families() -> dict[str, Any]:
    """Every family that comes with the package."""
    return {name: plugins.find("environments", name) for name in plugins.own("environments")}


def named(name: str, options: Any) -> str:
    """The name with these options, as far as they differ from the defaults."""
    defaults, words = asdict(type(options)()), {True: "yes", False: "no"}
    changed = {field: value for field, value in asdict(options).items() if value != defaults[field]}
    parts = [
        f"{field}={words[value] if isinstance(value, bool) else value}" for field, value in changed.items()
    ]
    return base_name(name) + ("?" + "&".join(parts) if parts else "")


def available() -> list[str]:
    """Every name that works if its family's package is installed."""
    return [f"{name}/{game}" for name, family in families().items() for game in family.games()]


def games_of(name: str) -> list[str]:
    """The names of all games of a family, "minatar" or "my_package:Corridor"; a game's name is itself."""
    _, colon, rest = _address(name)
    if "/" in (rest if colon else name):
        return [name]
    own = plugins.own("environments")
    if not colon and name not in [*own, *plugins.names("environments")]:
        close = closest(name, own)
        hint = f'did you mean "{close}"?' if close else _families_with(name)
        raise UsageError(f'"{name}" is neither a family of environments nor of the form family/game: {hint}')
    games: list[str] = getattr(family_and_game(f"{name}/")[0], "games", list)()
    if not games:
        raise UsageError(f"{name} lists no games: name one of them, {name}/GAME")
    return [f"{name}/{game}" for game in games]


def family_and_game(name: str) -> tuple[Any, str]:
    """The family and the game of a name."""
    module, colon, rest = _address(name)
    if colon:
        family, _, game = rest.partition("/")
        return plugins.find("environments", f"{module}:{family}"), game
    if (file := base_name(name).partition(":")[0]).endswith(".py"):
        raise UsageError(f'write the whole path of the file in "{name}": {os.path.abspath(file)}')
    family, slash, game = base_name(name).partition("/")
    if not slash:
        raise UsageError(f'"{name}" is not of the form family/game: {_families_with(name)}')
    return plugins.find("environments", family), game


def _address(name: str) -> tuple[str, str, str]:
    """("module", ":", "Family/game") of a name that begins with a user's module; not of "gym/x:Id"."""
    module, colon, rest = base_name(name).partition(":")
    return (module, colon, rest) if os.path.isabs(module) or "/" not in module else ("", "", "")


def _families_with(game: str) -> str:
    """'did you mean atari/Breakout or minatar/breakout?': the hint for a name without a family."""
    games = {name: name.partition("/")[2].lower() for name in available()}
    same = [name for name, known in games.items() if known == game.lower()]
    same = same or [name for name, known in games.items() if len(game) > 2 and known.startswith(game.lower())]
    *others, last = same or [""]
    before = f"{', '.join(others)} or " if others else ""
    if same:
        return f"did you mean {before}{last}?"
    close = closest(game, available())
    return f'did you mean "{close}"?' if close else "optimist environments lists them"


def _options_in(name: str) -> dict[str, Any]:
    """The options in a name, each in the type of its field."""
    query = name.partition("?")[2]
    if not query:
        return {}
    defaults, options = _defaults(family_and_game(name)[0]), {}
    for option, _, text in (part.partition("=") for part in query.split("&")):
        if option not in defaults:
            hint = did_you_mean(option, defaults) if defaults else f"write {base_name(name)}, it has none"
            raise UsageError(f'no environment option "{option}" in "{name}": {hint}')
        kind = type(defaults[option])
        try:
            options[option] = {"yes": True, "no": False}[text] if kind is bool else kind(text)
        except (KeyError, ValueError):
            wanted = {bool: "yes or no", int: "a whole number", float: "a number"}[kind]
            raise UsageError(f'{name}: {option} is "{text}": write {wanted}') from None
    return options


def _defaults(family: Any) -> dict[str, Any]:
    """The options of a family, each with its default."""
    options = fields(family.Options) if hasattr(family, "Options") else ()
    return {field.name: field.default for field in options}
