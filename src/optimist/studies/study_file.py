"""A study is a TOML file: its agents, environments, data, number of steps and seeds.

A file has one table per scale: `paper` has the paper's numbers, `mini` takes half an hour on a GPU, `tiny`
ten minutes on two cores. Keys outside these tables hold for all scales.
"""

import string
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from optimist import envs
from optimist.errors import UsageError, did_you_mean, in_one_line
from optimist.studies.plan import WHOLE, Study
from optimist.studies.report import figures
from optimist.studies.scores.normalisation import BUILT_IN, normaliser
from optimist.training.settings import Collection, fits, in_words

KEYS = {  # every key of a study's file, and its kind
    "title": str,
    "environments": list[str],
    "seeds": int,
    "agents": dict,
    "beside": dict,
    "collect": dict,
    "data": str,
    "play": dict,
    "views": dict,
    "training": dict,
    "read_at": dict[str, int],
    "recipe": str,
    "figures": list[str],
    "film": str,
    "normaliser": str,
    "select": dict,
}
VIEW = dict[str, float]
AGENT_KEYS = {"agent": str, "preset": str, "options": dict, "view": VIEW}
SELECT_KEYS = {"rule": str, "updates": int, "steps": int}
COLLECT_KEYS = {
    "agent": str,
    "preset": str,
    "options": dict,
    "seeds": int,
    "kept": int,
    "settings": dict,
}
PLAY = frozenset(field.name for field in fields(Collection))
PLACES = ("environment", "game", "run")  # what a path of data may have in braces
MOST_SEEDS = 1000  # as on the command line
CATALOG = files("optimist.studies").joinpath("catalog")


def catalogue() -> list[str]:
    """The names of the studies in the package."""
    return sorted(
        each.name.removesuffix(".toml") for each in CATALOG.iterdir() if each.name.endswith(".toml")
    )


def load(name: str, size: str = "mini") -> Study:
    """A study by its name in the catalogue, or by the path of its file."""
    path = Path(name)
    if name in catalogue():
        file = CATALOG.joinpath(f"{name}.toml")
    elif path.suffix == ".toml" and path.is_file():
        name, file = path.stem, path
    else:
        hint = did_you_mean(name, catalogue())
        raise UsageError(f'there is no study "{name}": {hint}; or name a .toml file')
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:  # not TOML, not UTF-8, 5,000 digits, 1,000 nested lists
        reason = in_one_line(problem)
        raise UsageError(f"{name} is not a study: its TOML cannot be read ({reason})") from problem
    return read(name, table, size)


def read(name: str, table: dict, size: str) -> Study:
    """The study of a TOML table at one of its scales; every key and the kind of every value is checked."""
    keys = _at_scale(name, table, size)
    _check_kinds(f"study {name}", keys)
    for place in (keys, keys.get("collect", {})):
        if not 1 <= place.get("seeds", 5) <= MOST_SEEDS:
            raise UsageError(f"study {name}: seeds is {place['seeds']}: choose from 1 to {MOST_SEEDS:,}")
    for word in ("environments", "agents", "recipe"):
        if not keys.get(word):
            raise UsageError(f"study {name}: the key {word} is missing or empty")
    if sum(word in keys for word in ("data", "collect", "play")) != 1:
        raise UsageError(
            f"study {name}: give exactly one of data (existing logs), collect (an agent to log) "
            "and play (the agents learn online)"
        )
    agents, beside = keys["agents"], keys.pop("beside", {})
    if twice := ", ".join(label for label in agents if label in beside):
        raise UsageError(f"study {name}: {twice} is in agents and in beside: give one of them another label")
    keys["agents"] = {**agents, **beside}
    for figure in keys.get("figures", ()):
        figures.check(figure)
    if keys.get("film", "") not in ("", *keys["agents"]):
        hint = did_you_mean(keys["film"], keys["agents"])
        raise UsageError(f'study {name}: no agent "{keys["film"]}" to film: {hint}')
    if "normaliser" in keys:
        normaliser(keys["normaliser"])  # raises if it does not exist
        if keys["normaliser"] not in BUILT_IN:  # the report may be written in another working directory
            keys["normaliser"] = str(Path(keys["normaliser"]).absolute())
    if "data" in keys:
        _check_data(name, keys["data"])
    if "collect" in keys:
        _check_players(name, keys)
    usual = {"title": name, "seeds": 5, "training": {}, "views": {WHOLE: {}}, "read_at": {}}
    usual |= {"collect": None, "data": None, "play": None}
    keys["environments"] = environments(name, keys["environments"])
    keys["figures"] = tuple(keys.get("figures", ()))
    study = Study(name=name, size=size, **{**usual, **keys})
    jobs = study.jobs()
    for job in jobs:
        job.check()
    settings = next(job.record() for job in jobs if job.label)
    every = settings.evaluate_every or settings.steps
    for reading, step in study.read_at.items():  # at another step its scores would be earlier ones
        if not 0 < step <= settings.steps or (step % every and step != settings.steps):
            raise UsageError(
                f"study {name}: read_at has {reading} at step {step:,}: there are evaluations every "
                f"{every:,} steps up to {settings.steps:,}; choose one of them"
            )
    return study


def _at_scale(name: str, table: dict, size: str) -> dict[str, Any]:
    """The keys that hold at this scale."""
    keys = {word: value for word, value in table.items() if word != "scales"}
    scales = table.get("scales") or {size: {}}  # a study without scales has one size
    if not fits(scales, dict[str, dict]):
        raise UsageError(f"study {name}: scales is {in_one_line(repr(scales))}, not a table of tables")
    if size not in scales:
        raise UsageError(f'study {name} has no scale "{size}": {did_you_mean(size, scales)}')
    scale = scales[size]
    for word in ("training", "collect", "play", "select"):  # the scale replaces them as a whole
        outside, inside = keys.get(word, {}), scale.get(word, {})
        if word in scale and fits(outside, dict) and fits(inside, dict) and outside.keys() - inside.keys():
            lost = ", ".join(sorted(outside.keys() - inside.keys()))
            raise UsageError(
                f"study {name}: scales.{size} has a table {word} of its own, so {lost} outside the scales "
                f"would not count: write it in scales.{size} too"
            )
    return keys | scale


def _check_kinds(place: str, keys: dict) -> None:
    """Raise UsageError for an unknown key, and for a value that is not of its kind, also in inner tables."""

    def check(place: str, table: dict, known: Mapping[str, Any]) -> None:
        for word, value in table.items():
            if word not in known:
                raise UsageError(f'{place}: there is no key "{word}": {did_you_mean(word, known)}')
            if not fits(value, known[word]):
                shown = in_one_line(repr(value))
                raise UsageError(f"{place}: {word} is {shown}, not {in_words(known[word])}")

    check(place, keys, KEYS)
    for word in keys.get("collect", {}):
        if word not in COLLECT_KEYS and word in PLAY:
            message = f'"{word}" is a setting of play: write settings = {{ {word} = ... }}'
            raise UsageError(f"{place}, collect: {message}")
    check(f"{place}, select", keys.get("select", {}), SELECT_KEYS)
    check(f"{place}, collect", keys.get("collect", {}), COLLECT_KEYS)
    check(f"{place}, views", views := keys.get("views", {}), dict.fromkeys(views, VIEW))
    for agents in (keys.get("agents", {}), keys.get("beside", {})):
        check(f"{place}, agents", agents, dict.fromkeys(agents, dict))
        for label, agent in agents.items():
            check(f"{place}, {label}", agent, AGENT_KEYS)
            if "agent" not in agent:
                raise UsageError(f"{place}, {label}: the key agent is missing")


def _check_data(study: str, path: str) -> None:
    """Raise UsageError for braces with anything but the name of a place: Python could format more."""
    try:
        parts = [part[1:] for part in string.Formatter().parse(path)]
    except ValueError:  # a brace alone
        parts = [("", "", None)]
    if any(part not in ((None, None, None), *((place, "", None) for place in PLACES)) for part in parts):
        raise UsageError(
            f"study {study}: data is {in_one_line(repr(path))}: write {{environment}}, {{game}} or {{run}}"
        )


def _check_players(study: str, keys: dict) -> None:
    seeds = keys.get("seeds", 5)
    players, kept = keys["collect"].get("seeds", seeds), keys["collect"].get("kept", 0)
    if not 0 <= kept <= players:
        raise UsageError(
            f"study {study}: kept is {kept}: it must be from 0 to {players}, the number of players"
        )
    training = keys.get("training", {})
    share = training.get("data_per_seed", training.get("log"))
    if kept and share == "whole":
        raise UsageError(
            f'study {study}: kept is {kept}, but data_per_seed = "whole" learns from all players: '
            "leave out one of the two"
        )
    if not kept and (players < seeds if share == "own" else share is None and players not in (1, seeds)):
        raise UsageError(
            f"study {study}: {seeds} seeds and {players} players: make them equal, so that each seed has its "
            'own log, or set training = { data_per_seed = "whole" } so that every seed learns from all logs'
        )


def environments(study: str, names: list[str]) -> tuple[str, ...]:
    """The names, each once, with a family replaced by its games: "minatar" is all of them."""
    try:
        every = list(dict.fromkeys(game for name in names for game in envs.games_of(name)))
    except UsageError as problem:
        raise UsageError(f"study {study}: {problem}") from None
    for name in every:
        family, game = envs.family_and_game(name)
        if game not in getattr(family, "games", list)():
            envs.make(name).close()  # raises if it does not exist; Gymnasium's are not listed
    return tuple(every)
