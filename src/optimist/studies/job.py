"""One run of a study: plain data that can be sent to a worker, its settings, and how a worker performs it."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optimist import plugins
from optimist.agents import described
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset, fingerprint_of
from optimist.data.disk import manifest
from optimist.data.disk.files import stays_inside
from optimist.data.disk.records import json_value, record
from optimist.data.machine import with_home
from optimist.errors import UsageError, did_you_mean
from optimist.studies.store import is_address, stage, staged_path
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
FINAL_SHARE = 0.1  # the last part of a log, which measures the final play


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
        """What its folder holds now. A run also has settings that are known only once its data is open."""
        folder = self.run_folder(out)
        ended = (folder / "DONE").exists()
        if not (folder / "config.toml").exists():
            return Standing(False, False, ["config.toml: missing"] if ended else [])
        before = read_config(folder)
        wanted, log = self.expected(before), before.get("dataset")
        if isinstance(log, dict) and not self.plays:  # the log as it is now, if it is there
            now = {"part": self.part_in_words} if "part" in log else {}
            if "recording" in log and (self.data_folder(out) / manifest.NAME).exists():
                now["recording"] = fingerprint_of(manifest.read(self.data_folder(out)))
            wanted["dataset"] = {**log, **now}
        changed = changes({name: before[name] for name in wanted if name in before}, wanted)
        seeds = before.get("seeds")  # who the best players are follows from the log
        if self.kept and not (isinstance(seeds, list) and len(seeds) == self.kept):
            changed.append(f"seeds: {seeds} saved, the best {self.kept} players requested")
        # A run of fewer steps goes on.
        done = ended and not changed and before["training"]["steps"] == self.steps()
        return Standing(True, done, changed)

    def done(self, out: Path) -> bool:
        """Does its folder hold a finished run with these settings?"""
        return self.standing(out).done

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
        wanted, log = dict(self.wanted), before.get("dataset")
        followed = log.get("following", FOLLOWING) if isinstance(log, dict) else FOLLOWING
        for name in RECORDS:
            mine, theirs = wanted.get(name), before.get(name)
            if isinstance(mine, dict) and isinstance(theirs, dict):
                decided = {each: theirs.get(each) for each in followed if mine.get(each) == AUTO}
                wanted[name] = {
                    each: value for each, value in {**mine, **decided}.items() if value is not None
                }
        return wanted

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
            complaint = ""
            if not 0 < amount < math.inf:
                complaint = "it must be above 0"
            elif name in COUNTED and amount == 1:
                complaint = "that is one transition; for all of the log leave it out"
            elif name not in COUNTED and amount > 1:
                complaint = "it is a share, so at most 1"
            if complaint:
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


def viewed(dataset: Dataset, view: Mapping[str, float]) -> Dataset:
    """The dataset after these views, one after the other."""
    for name, amount in view.items():
        if name in COUNTED and amount < 1:
            amount = max(1, int(amount * len(dataset)))
        dataset = getattr(dataset, name)(amount)
    return dataset


def perform_job(job: Job, out: Path) -> None:
    """Run the job to its end, from its last checkpoint: play, or open its part of a log and learn from it."""
    common: dict[str, Any] = {"restart": job.restart, "seeds": job.seeds}
    if job.plays:
        from optimist.training.online import OnlineTraining  # heavy, and only workers need it

        place = out / job.name
        OnlineTraining(job.built_agent(), job.environment, job.record(), out=place, **common).run()
        return
    from optimist.training.offline import OfflineTraining

    dataset = Dataset.open(stage(job.data) if job.data and is_address(job.data) else job.data_folder(out))
    OfflineTraining(
        job.built_agent(),
        dataset,
        job.record(),
        out=job.run_folder(out),
        environment=job.environment,
        part=lambda log: viewed(job.part_of(log), job.share),
        part_name=job.part_in_words,
        **{**common, "seeds": tuple(best_players(job, dataset)) or job.seeds},
    ).run()


def players_of(job: Job, dataset: Dataset) -> list[Dataset]:
    """The log of each player that the job learns from."""
    seeds = best_players(job, dataset) or dataset.provenance.get("seeds", [])
    return [dataset.played_by(seed) for seed in seeds] if len(seeds) > 1 or job.kept else [dataset]


def parts_of(job: Job, dataset: Dataset) -> list[Dataset]:
    """The part of each player's log that the job is about: of each log by itself if each seed has its own,
    otherwise what each player has in the part of all logs together."""
    if job.wanted.get("training", {}).get("data_per_seed") == "own":
        return [job.part_of(log) for log in players_of(job, dataset)]
    return players_of(job, job.part_of(dataset))


def best_players(job: Job, dataset: Dataset) -> list[int]:
    """The seeds of the players that the job learns from; empty if it learns from all."""
    return ranked(dataset)[: job.kept] if job.kept else []


def ranked(dataset: Dataset) -> list[int]:
    """The seeds of the players of a recording, sorted by their final returns, the best first."""

    def final(seed: int) -> float:
        log = dataset.played_by(seed)
        returns = final_returns(log)  # a short log may have none
        return float((returns if len(returns) else log.episodes.returns).mean())

    return sorted(dataset.provenance["seeds"], key=final, reverse=True)


def final_returns(log: Dataset) -> np.ndarray:
    """Returns of the complete episodes that ended in the last tenth of the log; they may begin earlier."""
    episodes, time = log.episodes, log.timeline.time[log.steps()]
    if not len(time):
        return episodes.returns
    recent = episodes.time > time.max() - FINAL_SHARE * (time.max() - time.min() + 1)
    return episodes.returns[episodes.complete & recent]
