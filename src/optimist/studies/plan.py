"""A study is a TOML file: its agents, environments, data, number of steps and seeds.

A file has one table per scale: `paper` has the paper's numbers, `mini` takes half an hour on a GPU, `tiny`
ten minutes on two cores. Keys outside these tables hold for all scales.
"""

import logging
import tomllib
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from optimist import envs
from optimist.errors import UsageError, did_you_mean
from optimist.studies.folders import Folders, folder_names
from optimist.studies.job import Job
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
FIGURES = ("intervals", "iqm", "medians", "bars", "curves", "spread", "profiles", "parts")
RANDOM_EPISODES = 100
log = logging.getLogger("optimist")
WHOLE = "all"  # the name of the part that is all of the data
FIRST_RUN = 1  # of the public logs: dqn/Breakout/1 to 5
AGENT_KEYS = ("agent", "preset", "options", "view")
SELECT_KEYS = ("rule", "updates", "every_rule")
COLLECT_KEYS = ("agent", "preset", "options", "seeds", "kept", "settings")


@dataclass(frozen=True)
class Study:
    """A grid of runs: environment x view of its data x agent; one run trains all seeds together."""

    name: str
    size: str
    title: str
    environments: tuple[str, ...]
    seeds: int
    agents: dict[str, dict]  # by label; the paper's agents, then those under `beside`
    recipe: str  # as in `optimist train --recipe`
    training: dict[str, Any]
    views: dict[str, dict[str, float]]  # by label
    read_at: dict[str, int]  # gradient steps at which results are read, by label
    # Exactly one of the next three: an agent that is logged first, existing logs, or online learning.
    collect: dict[str, Any] | None
    data: str | None  # a path with {environment} or {game} in it, and {run} if each seed has its own log
    play: dict[str, Any] | None  # settings of online learning
    figures: tuple[str, ...] = ()  # of the report; if empty, those that fit any study
    film: str = ""  # the label of an agent that is filmed
    select: dict[str, Any] | None = None  # settings of `optimist select` for the runs, if it is wanted
    normaliser: str = ""  # of the report, as in `optimist scores`; "" is the study's player and random play

    @cached_property
    def _folders(self) -> Folders:
        return Folders(
            folder_names(self.environments), folder_names([*self.views, WHOLE]), folder_names(self.agents)
        )

    def jobs(self) -> list[Job]:
        """All runs, collections first."""
        runs = self._trainings() if self.play is None else self._plays()
        return [*self._collections(), *self._random_plays(), *runs]

    def _collections(self) -> list[Job]:
        if self.collect is None:
            return []
        return [
            Job(
                name=self._log_of(environment),
                environment=environment,
                agent=self.collect.get("agent", "dqn"),
                preset=self.collect.get("preset"),
                options=self.collect.get("options", {}),
                settings=self.collect.get("settings", {}),
                scale=self.recipe,
                seeds=tuple(range(self.players)),
            )
            for environment in self.environments
        ]

    @property
    def players(self) -> int:
        """The number of online agents that are logged in each environment; by default one per seed."""
        return int((self.collect or {}).get("seeds", self.seeds))

    def _random_plays(self) -> list[Job]:
        """Runs that measure random play, unless the study names a normaliser: random play and the player's
        score are the study's own normaliser. A random agent learns nothing, so it is evaluated once."""
        if self.normaliser:
            return []
        once = {"steps": 1, "evaluate_every": 1, "episodes": RANDOM_EPISODES, "evaluation_steps": None}
        return [
            Job(
                name=f"random/{self._folders.environments[environment]}",
                environment=environment,
                agent="random",
                preset=None,
                settings=once,
                scale=self.recipe,
                seeds=(0,),
                data=self._log_of(environment, run=FIRST_RUN),
                needs=self._needs(environment),
            )
            for environment in self.environments
        ]

    def _needs(self, environment: str) -> tuple[str, ...]:
        return (self._log_of(environment),) if self.data is None else ()

    def _trainings(self) -> list[Job]:
        return [
            job
            for environment in self.environments
            for part in self.views
            for label in self.agents
            for job in self._trainings_of(environment, part, label)
        ]

    def _trainings_of(self, environment: str, part: str, label: str) -> list[Job]:
        """One run of all seeds, or one run per seed if each seed has its own log folder."""
        kept = (self.collect or {}).get("kept", 0)
        common = {
            "settings": {"data_per_seed": "own", **self.training} if self._own_logs else self.training,
            "kept": kept,
            "view": self.views[part],
            "share": self.agents[label].get("view", {}),
            "needs": self._needs(environment),
        }
        if not self._log_per_run:
            seeds, data = tuple(range(kept or self.seeds)), self._log_of(environment)
            return [self._run(environment, label, part, seeds=seeds, data=data, **common)]
        runs = range(FIRST_RUN, FIRST_RUN + self.seeds)
        jobs = [
            self._run(environment, label, part, seeds=(run,), data=self._log_of(environment, run), **common)
            for run in runs
        ]
        return [replace(job, name=f"{job.name}/{run}") for job, run in zip(jobs, runs, strict=True)]

    @property
    def _own_logs(self) -> bool:
        """Does each seed learn from the log of the player of the same seed?"""
        return self.collect is not None and (self.players > 1 or bool(self.collect.get("kept")))

    @property
    def _log_per_run(self) -> bool:
        return self.data is not None and "{run}" in self.data

    def _plays(self) -> list[Job]:
        """The runs of agents that learn online."""
        return [
            self._run(environment, label, settings=self.play, seeds=tuple(range(self.seeds)))
            for environment in self.environments
            for label in self.agents
        ]

    def _run(self, environment: str, label: str, part: str = WHOLE, **more) -> Job:
        agent, folders = self.agents[label], self._folders
        return Job(
            name=f"runs/{folders.environments[environment]}/{folders.parts[part]}/{folders.labels[label]}",
            environment=environment,
            agent=agent["agent"],
            preset=agent.get("preset"),
            options=agent.get("options", {}),
            scale=self.recipe,
            label=label,
            part=part,
            **more,
        )

    def _log_of(self, environment: str, run: int = 1) -> str:
        """The log of an environment; if agents learn online, the data of the first agent."""
        if self.collect is not None:
            return f"logs/{self._folders.environments[environment]}"
        if self.play is not None:
            return self._run(environment, next(iter(self.agents)), seeds=()).name
        assert self.data is not None
        return self.data.format(environment=environment, game=environment.partition("/")[2], run=run)


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
    for word in table:
        if word not in known:
            raise UsageError(f'{place}: there is no key "{word}": {did_you_mean(word, known)}')
    if needed and needed not in table:
        raise UsageError(f"{place}: the key {needed} is missing")
