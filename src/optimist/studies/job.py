"""One run of a study as plain data that can be sent to a worker, and the settings that follow from it."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from optimist import plugins
from optimist.agents import described
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset, fingerprint_of
from optimist.data.disk import manifest
from optimist.data.disk.files import stays_inside
from optimist.data.disk.records import json_value, record
from optimist.data.machine import with_home
from optimist.errors import UsageError, did_you_mean
from optimist.studies.store import is_address, staged_path
from optimist.training.resolve import (
    FOLLOWING,
    Resolved,
    resolve_collection,
    resolve_for_environment,
    resolve_training,
)
from optimist.training.settings import AUTO
from optimist.training.storage.configuration import as_config, changes
from optimist.training.storage.run_folder import read_config

RECORDS = ("agent", "training")  # tables of settings in a configuration
VIEWS = ("first", "last", "fraction", "best")  # names of methods of Dataset
COUNTED = ("first", "last")  # their amounts are transitions, or shares if they are below 1


class Standing(NamedTuple):
    """What the folder of a job holds, as one look found it."""

    begun: bool  # it holds a run
    done: bool  # and the run is finished, with the settings of the job
    changes: list[str]  # the settings in which the run differs from the job


@dataclass(frozen=True)
class Job:
    """A collection or a training of all its seeds together; its folder records its progress."""

    name: str  # also its folder inside the study's folder
    environment: str
    agent: str
    preset: str | None
    recipe: str
    seeds: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)  # fields of the agent that differ from the preset
    settings: dict[str, Any] = field(default_factory=dict)  # fields of the recipe that differ from it
    data: str | None = None  # a path or the name of another job; None if it learns online
    view: dict[str, float] = field(default_factory=dict)  # the part of the data that the study is about
    share: dict[str, float] = field(default_factory=dict)  # of that part, what this agent learns from
    kept: int = 0  # if above 0, its seeds are those of this many players with the best final returns
    needs: tuple[str, ...] = ()  # names of the jobs that must be done first
    label: str = ""  # name of the agent in tables and figures
    part: str = ""  # name of the part of the data
    restart: bool = False  # delete the run in its folder, which has other settings
    # In a job read from study.json: every setting as resolved when the study ran.
    resolved: dict[str, Any] | None = None

    @property
    def plays(self) -> bool:
        return self.data is None

    @property
    def collects(self) -> bool:
        """Does it record data for other jobs, without being compared itself?"""
        return self.plays and not self.label

    def run_folder(self, out: Path) -> Path:
        return out / self.name / "agent" if self.plays else out / self.name

    def data_folder(self, out: Path) -> Path:
        """The folder of its data: that of another job, an existing path, or where an address is staged."""
        assert self.data is not None, f"{self.name} has no data: it plays"
        if is_address(self.data):
            return staged_path(self.data)
        return out / self.data if self.data in self.needs else Path(with_home(self.data))

    def standing(self, out: Path) -> Standing:
        """What its folder holds now."""
        folder = self.run_folder(out)
        ended = (folder / "DONE").exists()
        if not (folder / "config.toml").exists():
            return Standing(False, False, ["config.toml: missing"] if ended else [])
        before = read_config(folder)  # it also has settings that are known only once the data is open
        wanted = {**self.expected(before), **self._log(out, before)}
        changed = changes({name: before[name] for name in wanted if name in before}, wanted)
        changed += self._players(before)
        # A run of fewer steps goes on.
        done = ended and not changed and before["training"]["steps"] == self.steps()
        return Standing(True, done, changed)

    def done(self, out: Path) -> bool:
        """Does its folder hold a finished run with these settings?"""
        return self.standing(out).done

    def _players(self, before: dict[str, Any]) -> list[str]:
        """Whether the run has as many players as are kept; who they are follows from the log."""
        seeds = before.get("seeds")
        if not self.kept or (isinstance(seeds, list) and len(seeds) == self.kept):
            return []
        return [f"seeds: {seeds} saved, the best {self.kept} players requested"]

    @cached_property
    def wanted(self) -> dict[str, Any]:
        """The settings that the run must have, as far as they are known before its data is opened."""
        if self.resolved is not None:
            return self.resolved
        agent, training = self._resolution
        if self.plays:
            training = resolve_for_environment(training, self.environment)
        limit = (
            {"huber_limit": AUTO} if getattr(agent, "huber_limit", None) == AUTO and not self.plays else {}
        )
        config = {
            "environment": self.environment,
            "agent": {**described(agent), **limit},
            "training": as_config(training),
        }
        return config if self.kept else {"seeds": list(self.seeds), **config}

    def expected(self, before: dict[str, Any]) -> dict[str, Any]:
        """The settings that the run with the configuration `before` must have: `wanted`, with what the log
        was to decide as it decided for that run."""
        wanted, there = self.wanted, before.get("dataset")
        followed = there.get("following", FOLLOWING) if isinstance(there, dict) else FOLLOWING
        tables = {name: _as_decided(wanted.get(name), before.get(name), followed) for name in RECORDS}
        return {**wanted, **{name: table for name, table in tables.items() if table is not None}}

    def _log(self, out: Path, before: dict[str, Any]) -> dict[str, Any]:
        """The log as it is now, if it is there, and the part to learn from; as far as the run has them."""
        there = before.get("dataset")
        if self.plays or not isinstance(there, dict):
            return {}
        log = {"part": self.part_in_words} if "part" in there else {}
        if "recording" in there and (self.data_folder(out) / manifest.NAME).exists():
            log["recording"] = fingerprint_of(manifest.read(self.data_folder(out)))
        return {"dataset": {**there, **log}}

    @property
    def part_in_words(self) -> str:
        """The part of the log that it learns from, as "first 0.5, best 0.1"."""
        amounts = [*self.view.items(), *self.share.items()]
        return ", ".join(f"{name} {amount:.12g}" for name, amount in amounts) or "whole"

    def steps(self) -> int:
        known = (self.resolved or {}).get("training", {}).get("steps")
        return int(self.record().steps if known is None else known)

    def record(self) -> Any:
        """The settings of its collection or training."""
        return self._resolution.settings

    def built_agent(self) -> Agent:
        """The agent by the job's recipe, with its options; `optimizer.epsilon` is a nested field."""
        return self._resolution.agent

    @cached_property
    def _resolution(self) -> Resolved:
        resolve: Callable[..., Resolved] = resolve_collection if self.plays else resolve_training
        if self.resolved is not None:  # it was read from a file, which may be malicious
            plugins.check_trusted("agents", self.agent)
        try:
            return resolve(
                None,
                self.agent,
                preset=self.preset,
                recipe=self.recipe,
                options=self.options,
                settings=self.settings,
            )
        except UsageError as problem:
            raise UsageError(f"{self.name}: {problem}") from None

    def check(self) -> None:
        """Raise UsageError for settings that would fail later in a worker."""
        _ = self._resolution
        for name, amount in (*self.view.items(), *self.share.items()):
            if name not in VIEWS:
                raise UsageError(f'{self.name}: no view "{name}": {did_you_mean(name, VIEWS)}')
            if complaint := _complaint(name, amount):
                raise UsageError(f"{self.name}: the view {name} is {amount:g}: {complaint}")

    def part_of(self, log: Dataset) -> Dataset:
        """The part of a log that the job's view selects."""
        return viewed(log, self.view)

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Job":
        return record(Job, json_value(text))

    def check_record(self) -> None:
        """Raise ValueError for what no job in a file has: it may be malicious, and its name is a folder."""
        for name in (self.name, *self.needs):
            if not stays_inside(name):
                raise ValueError(f'the run "{name}" leads out of its folder')
        if unknown := {*self.view, *self.share} - set(VIEWS):
            raise ValueError(f"no view {', '.join(unknown)}")
        training = (self.resolved or {}).get("training")
        if not isinstance(training, dict) or type(training.get("steps")) is not int:
            raise ValueError("a run lacks its resolved training")

    def written_down(self) -> dict[str, Any]:
        """Its record in study.json, with every setting as it is resolved now."""
        return asdict(replace(self, restart=False, resolved=self.wanted))

    @property
    def unresolved(self) -> "Job":
        """The job as the study's file describes it, without resolved settings."""
        return replace(self, restart=False, resolved=None)


def _as_decided(wanted: Any, before: Any, followed: Sequence[str]) -> Any:
    """A table of settings whose "auto" is replaced by what the run has, where the run followed its log."""
    if not isinstance(wanted, dict) or not isinstance(before, dict):
        return wanted
    decided = {name: before.get(name) for name in followed if wanted.get(name) == AUTO}
    return {name: value for name, value in {**wanted, **decided}.items() if value is not None}


def _complaint(view: str, amount: float) -> str:
    """Why this is no amount of a view; "" if it is one."""
    if not 0 < amount < math.inf:
        return "it must be above 0"
    if view in COUNTED:
        return "that is one transition; for all of the log leave it out" if amount == 1 else ""
    return "it is a share, so at most 1" if amount > 1 else ""


def viewed(dataset: Dataset, view: Mapping[str, float]) -> Dataset:
    """The dataset after these views, one after the other."""
    for name, amount in view.items():
        dataset = getattr(dataset, name)(_amount(name, amount, len(dataset)))
    return dataset


def _amount(view: str, amount: float, available: int) -> float:
    """`first` and `last` count transitions; below 1 they are shares, as in the other views."""
    return max(1, int(amount * available)) if view in COUNTED and amount < 1 else amount
