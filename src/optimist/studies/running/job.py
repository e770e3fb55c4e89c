"""One run of a study, as plain data that can travel to a worker, and how it is performed."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from optimist import agents
from optimist.agent import Agent
from optimist.data.store import Dataset
from optimist.errors import DataError, UsageError, did_you_mean
from optimist.studies.running.players import ranked
from optimist.training.offline import OfflineTraining
from optimist.training.online import OnlineTraining
from optimist.training.scales import SCALES, Scale

VIEWS = ("first", "last", "fraction", "best")  # of a dataset, by the name of the method that makes them


@dataclass(frozen=True)
class Job:
    """A collection or a training: its seeds are fused, and its folder says how far it is."""

    name: str  # also its folder, below the study's own
    environment: str
    agent: str
    preset: str | None
    scale: str
    seeds: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)  # fields of the agent that differ from the preset
    settings: dict[str, Any] = field(default_factory=dict)  # fields of the scale that differ from it
    data: str | None = None  # what it learns from, a path or the name of another job; None: it plays
    view: dict[str, float] = field(default_factory=dict)  # the part of the data that it learns from
    kept: int = 0  # its seeds are instead those of so many players of the data that ended best
    needs: tuple[str, ...] = ()  # the names of jobs that must be done before
    label: str = ""  # what tables and figures call the agent
    part: str = ""  # and the part of the data

    @property
    def plays(self) -> bool:
        return self.data is None

    @property
    def collects(self) -> bool:
        """It plays for others to learn from, and is not compared itself."""
        return self.plays and not self.label

    def run_folder(self, out: Path) -> Path:
        return out / self.name / "agent" if self.plays else out / self.name

    def data_folder(self, out: Path) -> Path:
        """Where the data is that it learns from: another job's, or a path that was there before."""
        assert self.data is not None, f"{self.name} plays"
        return out / self.data if self.data in self.needs else Path(self.data)

    def done(self, out: Path) -> bool:
        return (self.run_folder(out) / "DONE").exists()

    def steps(self) -> int:
        record = self.plan().collection if self.plays else self.plan().training
        return int(self.settings.get("steps", record.steps))

    def plan(self) -> Scale:
        if self.scale not in SCALES:
            raise UsageError(f'{self.name}: unknown scale "{self.scale}": {did_you_mean(self.scale, SCALES)}')
        return SCALES[self.scale]

    def built_agent(self) -> Agent:
        """The agent at the job's scale, with its options; an option `optimizer.epsilon` is a nested field."""
        agent = self.plan().fitted(agents.preset(self.agent, self.preset))
        return with_values(agent, self.options, self.name)

    def check(self) -> None:
        """Complain of what could only fail later, in a worker."""
        self.built_agent()
        plan = self.plan()
        with_values(plan.collection if self.plays else plan.training, self.settings, self.name)
        for name in self.view:
            if name not in VIEWS:
                raise UsageError(f'{self.name}: no view "{name}": {did_you_mean(name, VIEWS)}')

    def perform(self, out: Path) -> None:
        """Run it to its end, from where it stopped."""
        plan = self.plan()
        if self.plays:
            collection = with_values(plan.collection, self.settings, self.name)
            OnlineTraining(
                self.built_agent(), self.environment, collection, out=out / self.name, seeds=self.seeds
            ).run()
            return
        dataset = self.part_of(Dataset.open(self.data_folder(out)))
        OfflineTraining(
            self.built_agent(),
            dataset,
            with_values(plan.training, self.settings, self.name),
            out=self.run_folder(out),
            seeds=tuple(self.best_players(dataset)) or self.seeds,
            environment=self.environment,
        ).run()

    def part_of(self, dataset: Dataset) -> Dataset:
        """What it learns from, of the whole log."""
        for name, amount in self.view.items():
            dataset = getattr(dataset, name)(_amount(name, amount, len(dataset)))
        return dataset

    def best_players(self, dataset: Dataset) -> list[int]:
        """The seeds of those whose logs it learns from; none where it learns from all."""
        return [player.seed for player in ranked(dataset)[: self.kept]] if self.kept else []

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Job":
        record = json.loads(text)
        return Job(**{**record, "seeds": tuple(record["seeds"]), "needs": tuple(record["needs"])})


def with_logs_of(other: Path, theirs: list[Job], jobs: list[Job]) -> list[Job]:
    """The same runs, on the logs that another study has collected by the same recipes."""
    there = {job.name: job for job in theirs if job.collects and job.done(other)}
    collecting = [job for job in jobs if job.collects]
    if not collecting:
        raise UsageError("this study collects no logs, so there are none to take: leave --logs away")
    for wanted in collecting:
        if there.get(wanted.name) != wanted:
            raise UsageError(
                f"{other} has no finished {wanted.name} by this recipe: have it played, without --logs"
            )
    return [_moved(job, other) if job.data in there else job for job in jobs if job.name not in there]


def _moved(job: Job, other: Path) -> Job:
    """It learns from another study's log, and waits for nobody."""
    log = str((other / str(job.data)).resolve())  # a worker elsewhere must find it
    return replace(job, data=log, needs=tuple(name for name in job.needs if name != job.data))


def check_logs(jobs: list[Job], out: Path) -> None:
    """Complain of logs that are said to be there and are not, before any run begins."""
    for job in jobs:
        if not job.plays and job.data not in job.needs and not job.data_folder(out).exists():
            raise DataError(
                f"{job.data_folder(out)}, the log of {job.environment}, does not exist: mend `data` in the "
                "study's file, or have it played first (collect)"
            )


def _amount(view: str, amount: float, available: int) -> float:
    """`first` and `last` count transitions; below 1 they are shares, as the other views have them."""
    return max(1, int(amount * available)) if view in ("first", "last") and amount < 1 else amount


def with_values(record: Any, values: Mapping[str, Any], place: str) -> Any:
    """The record with some fields changed; dots lead into records inside it."""
    for name, value in values.items():
        first, dot, rest = name.partition(".")
        known = list(record.__dataclass_fields__)
        if first not in known:
            raise UsageError(f'{place}: there is no setting "{name}": {did_you_mean(first, known)}')
        inner = with_values(getattr(record, first), {rest: value}, place) if dot else value
        record = replace(record, **{first: inner})
    return record
