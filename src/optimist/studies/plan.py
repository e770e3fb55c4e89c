"""A study is a TOML file: which agents learn from whose play, where, how long and from which seeds.

A file has one table per scale: `paper` is the paper's own numbers, `mini` fits a GPU's half hour, `tiny` two
cores' ten minutes. What a scale does not say, the file says for all of them.
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

KEYS = {  # every word that a study may say, and what it has to be
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
}
FIGURES = ("intervals", "iqm", "medians", "bars", "curves", "spread", "profiles", "parts")  # it may name
RANDOM_EPISODES = 100
log = logging.getLogger("optimist")
WHOLE = "all"  # the part that is all of the data
FIRST_RUN = 1  # of the public logs: dqn/Breakout/1 to 5
AGENT_KEYS = ("agent", "preset", "options", "view")
COLLECT_KEYS = ("agent", "preset", "options", "seeds", "kept", "settings")


@dataclass(frozen=True)
class Study:
    """A grid of runs: every environment x view of its data x agent; seeds are fused into one run."""

    name: str
    size: str
    title: str
    environments: tuple[str, ...]
    seeds: int
    agents: dict[str, dict]  # by label; those of the paper, and those that stand beside them
    recipe: str  # as of `optimist train --recipe`
    training: dict[str, Any]
    views: dict[str, dict[str, float]]  # by label
    read_at: dict[str, int]  # gradient steps at which results are read off, by label
    # One of these three: whose play is logged first, where logs are, or how the agents themselves play.
    collect: dict[str, Any] | None
    data: str | None  # a path with {environment} or {game} in it, and {run} where each seed has its own
    play: dict[str, Any] | None  # settings of their collection
    figures: tuple[str, ...] = ()  # of the report; where none is named, those that fit any study
    film: str = ""  # the label of an agent that is filmed
    normaliser: str = (
        ""  # of the report, as `optimist scores` has it [the study's own player and random play]
    )

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
        """How many online agents are logged in each environment: one for each seed unless said."""
        return int((self.collect or {}).get("seeds", self.seeds))

    def _random_plays(self) -> list[Job]:
        """What random play scores in the same environments, which with the player's own score makes the
        study's normaliser, unless it names another. A random agent learns nothing: it is evaluated once."""
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
        """One run of all seeds; a run of each seed where the logs lie in folders of their own."""
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
        """Agents that are compared by how they learn online."""
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
        """Where the play of the agent lies that the others are measured by."""
        if self.collect is not None:
            return f"logs/{self._folders.environments[environment]}"
        if self.play is not None:
            return self._run(environment, next(iter(self.agents)), seeds=()).name
        assert self.data is not None
        return self.data.format(environment=environment, game=environment.partition("/")[2], run=run)


def catalogue() -> list[str]:
    """The studies that come with the package."""
    folder = files("optimist.studies").joinpath("catalog")
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def load(name: str, size: str = "mini") -> Study:
    """A study of the catalogue, or of a file."""
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
        raise UsageError(f"{name} is not a study ({problem})") from problem
    return read(name, table, size)


def read(name: str, table: dict, size: str) -> Study:
    """The study that a table describes at one of its scales, every word of it checked."""
    scales = table.pop("scales", None) or {size: {}}  # a study of one's own may have but one size
    if size not in scales:
        raise UsageError(f'study {name} has no scale "{size}": {did_you_mean(size, scales)}')
    said = {**table, **scales[size]}
    if "scale" in said:
        log.warning("study %s: its scale is called recipe now, as in optimist train --recipe", name)
        said["recipe"] = said.pop("scale")
    for word, value in said.items():
        if word not in KEYS:
            raise UsageError(f'study {name}: there is no "{word}": {did_you_mean(word, KEYS)}')
        if not isinstance(value, KEYS[word]):
            raise UsageError(f"study {name}: {word} is {value!r}, not {KEYS[word].__name__}")
    for word in ("environments", "agents", "recipe"):
        if not said.get(word):
            raise UsageError(f"study {name}: it says nothing of its {word}")
    if sum(word in said for word in ("data", "collect", "play")) != 1:
        raise UsageError(
            f"study {name}: say where its logs are (data), whose play to log (collect) or how agents play "
            "(play), one of the three"
        )
    said["agents"] = {**said["agents"], **said.pop("beside", {})}
    for label, agent in said["agents"].items():
        _check_words(f"study {name}, {label}", agent, AGENT_KEYS, needed="agent")
    for figure in said.get("figures", ()):
        if figure not in FIGURES:
            raise UsageError(f'study {name}: no figure "{figure}": {did_you_mean(str(figure), FIGURES)}')
    if "normaliser" in said:
        normaliser(said["normaliser"])  # complains of one that is not there
    if said.get("film", "") not in ("", *said["agents"]):
        hint = did_you_mean(said["film"], said["agents"])
        raise UsageError(f'study {name}: no agent "{said["film"]}" to film: {hint}')
    if "collect" in said:
        _check_words(f"study {name}, collect", said["collect"], COLLECT_KEYS)
        _check_players(name, said)
    usual = {"title": name, "seeds": 5, "training": {}, "views": {WHOLE: {}}, "read_at": {}}
    usual |= {"collect": None, "data": None, "play": None}
    said |= {
        "environments": environments(name, said["environments"]),
        "figures": tuple(said.get("figures", ())),
    }
    study = Study(name=name, size=size, **{**usual, **said})
    for job in study.jobs():
        job.check()
    return study


def _check_players(study: str, said: dict) -> None:
    seeds = said.get("seeds", 5)
    players, kept = said["collect"].get("seeds", seeds), said["collect"].get("kept", 0)
    if not 0 <= kept <= players:
        raise UsageError(f"study {study}: {kept} of {players} players cannot be kept")
    if (
        not kept
        and players not in (1, seeds)
        and not {"data_per_seed", "log"} & said.get("training", {}).keys()
    ):
        raise UsageError(
            f"study {study}: {seeds} seeds and {players} players: as many of both, so that each seed learns "
            'from a log of its own, or training = { data_per_seed = "whole" } for all from all'
        )


def environments(study: str, names: list[str]) -> tuple[str, ...]:
    """The names, with a family's in place of its own name: "minatar" is all of its games."""
    known = envs.available()
    every = [
        name
        for asked in names
        for name in ([asked] if "/" in asked else [n for n in known if n.startswith(f"{asked}/")])
    ]
    if not every:
        raise UsageError(f"study {study}: no environments are called {', '.join(names)}")
    for name in every:
        if name not in known:
            envs.make(name).close()  # complains of what is not there; gym's own are not listed
    return tuple(every)


def _check_words(place: str, table: dict, known: tuple[str, ...], needed: str = "") -> None:
    for word in table:
        if word not in known:
            raise UsageError(f'{place}: there is no "{word}": {did_you_mean(word, known)}')
    if needed and needed not in table:
        raise UsageError(f"{place}: it says no {needed}")
