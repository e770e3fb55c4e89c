"""A study is a TOML file: its agents, environments, data, number of steps and seeds.

A file has one table per scale: `paper` has the paper's numbers, `mini` takes half an hour on a GPU, `tiny`
ten minutes on two cores. Keys outside these tables hold for all scales.
"""

import logging
import tomllib
from importlib.resources import files
from pathlib import Path

from optimist import envs
from optimist.errors import UsageError, did_you_mean, in_one_line
from optimist.studies.plan import WHOLE, Study
from optimist.studies.scores.normalisation import normaliser

KEYS = {  # every key of a study's file, and its type
    "title": str,
    "environments": list,
    "seeds": int,
    "agents": dict,
    "beside": dict,
    "collect": dict,
    "data": str,
    "play": dict,
    "views": dict,
    "training": dict,
    "read_at": dict,
    "recipe": str,
    "figures": list,
    "film": str,
    "normaliser": str,
    "select": dict,
}
AGENT_KEYS = ("agent", "preset", "options", "view")
SELECT_KEYS = ("rule", "updates", "every_rule", "steps")
COLLECT_KEYS = ("agent", "preset", "options", "seeds", "kept", "settings")
FIGURES = ("intervals", "iqm", "medians", "bars", "curves", "spread", "profiles", "parts")
MOST_SEEDS = 1000  # as on the command line
log = logging.getLogger("optimist")


def catalogue() -> list[str]:
    """The names of the studies in the package."""
    folder = files("optimist.studies").joinpath("catalog")
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def load(name: str, size: str = "mini") -> Study:
    """A study by its name in the catalogue, or by the path of its file."""
    path = Path(name)
    if name in catalogue():
        text = files("optimist.studies").joinpath("catalog").joinpath(f"{name}.toml").read_text("utf-8")
    elif path.suffix == ".toml" and path.is_file():
        text, name = path.read_text(encoding="utf-8"), path.stem
    else:
        raise UsageError(
            f'there is no study "{name}": {did_you_mean(name, catalogue())}; or name a .toml file'
        )
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"{name} is not a study: its TOML cannot be read ({problem})") from problem
    return read(name, table, size)


def read(name: str, table: dict, size: str) -> Study:
    """The study of a TOML table at one of its scales; every key is checked."""
    try:
        return _checked(name, table, size)
    except (TypeError, AttributeError, ValueError, OverflowError) as problem:
        reason = in_one_line(problem)
        raise UsageError(
            f"study {name}: a value is not of its kind ({reason}): compare it with docs/studies.md"
        ) from problem


def _checked(name: str, table: dict, size: str) -> Study:
    scales = table.pop("scales", None) or {size: {}}  # a study without scales has one size
    if size not in scales:
        raise UsageError(f'study {name} has no scale "{size}": {did_you_mean(size, scales)}')
    keys = {**table, **scales[size]}
    if "scale" in keys:
        log.warning("study %s: the key `scale` is now called `recipe`, as in optimist train --recipe", name)
        keys["recipe"] = keys.pop("scale")
    for word, value in keys.items():
        if word not in KEYS:
            raise UsageError(f'study {name}: there is no key "{word}": {did_you_mean(word, KEYS)}')
        if not isinstance(value, KEYS[word]):
            raise UsageError(f"study {name}: {word} is {value!r}, not {KEYS[word].__name__}")
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
    keys["agents"] = {**keys["agents"], **keys.pop("beside", {})}
    for label, agent in keys["agents"].items():
        _check_words(f"study {name}, {label}", agent, AGENT_KEYS, needed="agent")
    for figure in keys.get("figures", ()):
        if figure not in FIGURES:
            raise UsageError(f'study {name}: no figure "{figure}": {did_you_mean(str(figure), FIGURES)}')
    if "normaliser" in keys:
        normaliser(keys["normaliser"])  # raises if it does not exist
    if keys.get("film", "") not in ("", *keys["agents"]):
        hint = did_you_mean(keys["film"], keys["agents"])
        raise UsageError(f'study {name}: no agent "{keys["film"]}" to film: {hint}')
    if "select" in keys:
        _check_words(f"study {name}, select", keys["select"], SELECT_KEYS)
    if "collect" in keys:
        _check_words(f"study {name}, collect", keys["collect"], COLLECT_KEYS)
        _check_players(name, keys)
    usual = {"title": name, "seeds": 5, "training": {}, "views": {WHOLE: {}}, "read_at": {}}
    usual |= {"collect": None, "data": None, "play": None}
    keys |= {
        "environments": environments(name, keys["environments"]),
        "figures": tuple(keys.get("figures", ())),
    }
    study = Study(name=name, size=size, **{**usual, **keys})
    for job in study.jobs():
        job.check()
    return study


def _check_players(study: str, keys: dict) -> None:
    seeds = keys.get("seeds", 5)
    players, kept = keys["collect"].get("seeds", seeds), keys["collect"].get("kept", 0)
    if not 0 <= kept <= players:
        raise UsageError(
            f"study {study}: kept is {kept}: it must be from 0 to {players}, the number of players"
        )
    if (
        not kept
        and players not in (1, seeds)
        and not {"data_per_seed", "log"} & keys.get("training", {}).keys()
    ):
        raise UsageError(
            f"study {study}: {seeds} seeds and {players} players: make them equal, so that each seed has its "
            'own log, or set training = { data_per_seed = "whole" } so that every seed learns from all logs'
        )


def environments(study: str, names: list[str]) -> tuple[str, ...]:
    """The names, with a family replaced by its games: "minatar" is all of them."""
    known = envs.available()
    every = [
        name
        for asked in names
        for name in ([asked] if "/" in asked else [n for n in known if n.startswith(f"{asked}/")])
    ]
    if not every:
        raise UsageError(
            f"study {study}: there are no environments {', '.join(names)}: see optimist environments"
        )
    for name in every:
        if name not in known:
            envs.make(name).close()  # raises if it does not exist; Gymnasium's are not listed
    return tuple(every)


def _check_words(place: str, table: dict, known: tuple[str, ...], needed: str = "") -> None:
    if not isinstance(table, dict):
        raise UsageError(f"{place} is {in_one_line(repr(table))}, not a table")
    for word in table:
        if word not in known:
            raise UsageError(f'{place}: there is no key "{word}": {did_you_mean(word, known)}')
    if needed and needed not in table:
        raise UsageError(f"{place}: the key {needed} is missing")
