"""A study is a grid of runs; its plan lists them as jobs, each with a folder of a readable name."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from optimist import envs
from optimist.data.machine import with_home
from optimist.errors import UsageError, did_you_mean
from optimist.studies.job import Job
from optimist.studies.store import is_address

RANDOM_EPISODES = 100
WHOLE = "all"  # the name of the part that is all of the data
FIRST_RUN = 1  # of the public logs: dqn/Breakout/1 to 5
LONGEST_NAME = 80  # characters of a label in a folder's name


class Folders(NamedTuple):
    """The folder names of the environments, parts of the data and labels of a study."""

    environments: dict[str, str]
    parts: dict[str, str]
    labels: dict[str, str]


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A folder for each label, all different: "REM (a)" becomes rem-a.

    If two labels give the same name, or the name is empty or too long, the label's hash is appended."""
    names = {label: re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.") for label in labels}
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    for label, name in names.items():
        if not name or name in shared or len(name) > LONGEST_NAME:
            mark = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            names[label] = f"{name[:LONGEST_NAME]}-{mark}".lstrip("-")
    return names


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
    selects: bool = True  # False: not now, and the report has no earlier choices
    normaliser: str = ""  # of the report, as in `optimist scores`; "" is the study's player and random play

    @cached_property
    def _folders(self) -> Folders:
        return Folders(
            folder_names(self.environments), folder_names([*self.views, WHOLE]), folder_names(self.agents)
        )

    def jobs(self) -> list[Job]:
        """All runs, collections first; then those that measure random play, unless the study names a
        normaliser: random play and the player's score are the study's own."""
        collections, random_plays = [], []
        # A random agent learns nothing, so it is evaluated once.
        once = {"steps": 1, "evaluate_every": 1, "episodes": RANDOM_EPISODES, "evaluation_steps": None}
        for environment in self.environments:
            log = self._log_of(environment, run=FIRST_RUN)
            common: dict[str, Any] = {"environment": environment, "recipe": self.recipe}
            if self.collect is not None:
                collections.append(
                    Job(
                        name=log,
                        agent=self.collect.get("agent", "dqn"),
                        preset=self.collect.get("preset"),
                        options=self.collect.get("options", {}),
                        settings=self.collect.get("settings", {}),
                        seeds=tuple(range(self.players)),
                        **common,
                    )
                )
            if not self.normaliser:
                common |= {"data": log, "needs": self._needs(environment), "settings": once}
                name = f"random/{self._folders.environments[environment]}"
                random_plays.append(Job(name, agent="random", preset=None, seeds=(0,), **common))
        runs = self._plays() if self.play is not None else self._trainings()
        return [*collections, *random_plays, *runs]

    @property
    def players(self) -> int:
        """The number of online agents that are logged in each environment; by default one per seed."""
        return int((self.collect or {}).get("seeds", self.seeds))

    def some_jobs(self, agents: Sequence[str] = (), parts: Sequence[str] = ()) -> list[Job]:
        """The runs of these agents on these parts of the data (of all if none is named), with their needs."""
        for what, names, known in (("agent", agents, self.agents), ("part", parts, self.views)):
            if missing := [name for name in names if name not in known]:
                apart = "; separate names that have commas by semicolons" * any("," in name for name in known)
                hint = did_you_mean(missing[0], known)
                raise UsageError(f'study {self.name} has no {what} "{missing[0]}": {hint}{apart}')
        jobs = self.jobs()
        asked = [
            job
            for job in jobs
            if not job.label or (job.label in (agents or self.agents) and (not parts or job.part in parts))
        ]
        needed = {name for job in asked for name in job.needs}  # online, the player that is 100% is a run too
        return [job for job in jobs if job in asked or job.name in needed]

    def _needs(self, environment: str) -> tuple[str, ...]:
        return (self._log_of(environment),) if self.data is None else ()

    def _trainings(self) -> list[Job]:
        """For each environment, part of the data and agent a run of all seeds, or one run per seed if each
        seed has its own log folder."""
        kept = (self.collect or {}).get("kept", 0)
        # Does each seed learn from the log of the player of the same seed?
        own = self.collect is not None and (self.players > 1 or bool(kept))
        settings = {"data_per_seed": "own", **self.training} if own else self.training
        jobs = []
        for environment, part, label in product(self.environments, self.views, self.agents):
            common = {
                "settings": settings,
                "kept": kept,
                "view": self.views[part],
                "share": self.agents[label].get("view", {}),
                "needs": self._needs(environment),
            }
            if "{run}" not in (self.data or ""):
                seeds, data = tuple(range(kept or self.seeds)), self._log_of(environment)
                jobs.append(self._run(environment, label, part, seeds=seeds, data=data, **common))
                continue
            for run in range(FIRST_RUN, FIRST_RUN + self.seeds):
                data = self._log_of(environment, run)
                job = self._run(environment, label, part, seeds=(run,), data=data, **common)
                jobs.append(replace(job, name=f"{job.name}/{run}"))
        return jobs

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
            recipe=self.recipe,
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
        log = self.data.format(environment=environment, game=envs.game_of(environment), run=run)
        # Workers and reports may have another working directory.
        return log if is_address(log) or with_home(log) != log else str(Path(log).absolute())
