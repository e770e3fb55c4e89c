"""One run of a study, as plain data that can travel to a worker, and how it is performed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from optimist import plugins
from optimist.agents import described
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset, fingerprint_of
from optimist.data.disk import manifest
from optimist.errors import DataError, RunError, UsageError, did_you_mean, some_of
from optimist.studies.players import ranked
from optimist.training.offline import OfflineTraining
from optimist.training.online import OnlineTraining
from optimist.training.resolve import Resolved, resolve_collection, resolve_training
from optimist.training.storage.run_folder import as_config, changes, read_config

NAMED = 3  # runs that a refusal names; the others it counts
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
    view: dict[str, float] = field(default_factory=dict)  # the part of the data that the study is about
    share: dict[str, float] = field(default_factory=dict)  # the part of that which this agent learns from
    kept: int = 0  # its seeds are instead those of so many players of the data that ended best
    needs: tuple[str, ...] = ()  # the names of jobs that must be done before
    label: str = ""  # what tables and figures call the agent
    part: str = ""  # and the part of the data
    restart: bool = False  # what its folder holds was made with other settings, and goes
    # Of a job that was read back: every setting as it was resolved when the study ran, so that a report
    # compares with that; nothing in studies of versions that did not write it.
    resolved: dict[str, Any] | None = None

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
        """Is there a finished run by these settings?"""
        folder = self.run_folder(out)
        if not (folder / "DONE").exists() or self.changes(out):
            return False
        steps = self.asked().get("training", {}).get("steps")
        return steps is None or read_config(folder)["training"]["steps"] == steps

    def changes(self, out: Path) -> list[str]:
        """How the run in its folder was made otherwise than this job asks; nothing where there is none."""
        folder = self.run_folder(out)
        if not (folder / "config.toml").exists():
            return ["config.toml: nothing there"] if (folder / "DONE").exists() else []
        asked = {**self.asked(), **self._recording(out)}
        before = read_config(folder)  # it also says what is known only when the data is opened
        return changes({name: before[name] for name in asked if name in before}, asked)

    def asked(self) -> dict[str, Any]:
        """What the run's configuration must say, of all that is known before its data is opened."""
        if self.resolved is not None:
            return self.resolved
        config = {
            "environment": self.environment,
            "agent": described(self.built_agent()),
            "training": as_config(self.record()),
        }
        return config if self.kept else {"seeds": list(self.seeds), **config}

    def _recording(self, out: Path) -> dict[str, Any]:
        """The data that is there now, where a run could say what it learned from."""
        if self.plays or self.resolved == {} or not (self.data_folder(out) / manifest.NAME).exists():
            return {}
        there = read_config(self.run_folder(out)).get("dataset", {})
        now = fingerprint_of(manifest.read(self.data_folder(out)))
        return {"dataset": {**there, "recording": now}} if "recording" in there else {}

    def steps(self) -> int:
        known = (self.resolved or {}).get("training", {}).get("steps")
        return int(self.record().steps if known is None else known)

    def record(self) -> Any:
        """The collection or the training that it performs."""
        return self._resolved().settings

    def built_agent(self) -> Agent:
        """The agent at the job's scale, with its options; an option `optimizer.epsilon` is a nested field."""
        return self._resolved().agent

    def _resolved(self) -> Resolved:
        resolve: Callable[..., Resolved] = resolve_collection if self.plays else resolve_training
        if self.resolved is not None:  # read from somebody's folder, which may mean harm
            plugins.check_trusted("agents", self.agent)
        try:
            return resolve(
                None,
                self.agent,
                preset=self.preset,
                scale=self.scale,
                options=self.options,
                settings=self.settings,
            )
        except UsageError as problem:
            raise UsageError(f"{self.name}: {problem}") from None

    def check(self) -> None:
        """Raise an error for what would otherwise fail later, in a worker."""
        self._resolved()
        for name in (*self.view, *self.share):
            if name not in VIEWS:
                raise UsageError(f'{self.name}: no view "{name}": {did_you_mean(name, VIEWS)}')

    def perform(self, out: Path) -> None:
        """Run it to its end, from where it stopped."""
        if self.plays:
            OnlineTraining(
                self.built_agent(),
                self.environment,
                self.record(),
                out=out / self.name,
                seeds=self.seeds,
                restart=self.restart,
            ).run()
            return
        dataset = Dataset.open(self.data_folder(out))
        OfflineTraining(
            self.built_agent(),
            dataset,
            self.record(),
            out=self.run_folder(out),
            seeds=tuple(self.best_players(dataset)) or self.seeds,
            environment=self.environment,
            restart=self.restart,
            part=lambda log: _viewed(self.part_of(log), self.share),
        ).run()

    def part_of(self, log: Dataset) -> Dataset:
        """The part of a log that the study is about."""
        return _viewed(log, self.view)

    def players(self, dataset: Dataset) -> list[Dataset]:
        """The logs of those whose play the job learns from, one by one."""
        seeds = self.best_players(dataset) or dataset.provenance.get("seeds", [])
        return [dataset.played_by(seed) for seed in seeds] if len(seeds) > 1 else [dataset]

    def best_players(self, dataset: Dataset) -> list[int]:
        """The seeds of those whose logs it learns from; none where it learns from all."""
        return [player.seed for player in ranked(dataset)[: self.kept]] if self.kept else []

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Job":
        record = {"resolved": {}, **json.loads(text)}
        return Job(**{**record, "seeds": tuple(record["seeds"]), "needs": tuple(record["needs"])})

    def written_down(self) -> str:
        """As the study's folder keeps it, with every setting as it is resolved now."""
        return replace(self, restart=False, resolved=self.asked()).as_json()

    @property
    def recipe(self) -> "Job":
        """What was asked for, without what became of it."""
        return replace(self, restart=False, resolved=None)


def outdated(jobs: list[Job], out: Path) -> dict[str, list[str]]:
    """By its name, why a run in the folder is not the one that is asked for: it has other settings, or its
    log is still to be played, so that it learned from another."""
    unplayed = {job.name for job in jobs if not job.done(out)}
    found = {}
    for job in jobs:
        begun = (job.run_folder(out) / "config.toml").exists()
        logs = [
            f"{name}: another there, this one is still to be played" for name in job.needs if name in unplayed
        ]
        found[job.name] = job.changes(out) or (logs if begun else [])
    return {name: reasons for name, reasons in found.items() if reasons}


def restarted(jobs: list[Job], out: Path) -> list[Job]:
    """The same jobs; those whose folder holds an outdated run begin anew."""
    anew = outdated(jobs, out)
    return [replace(job, restart=True) if job.name in anew else job for job in jobs]


def check_settings(jobs: list[Job], out: Path) -> None:
    """Refuse a folder with outdated runs: their numbers would be reported as those of this study."""
    found = outdated(jobs, out)
    if found:
        named = some_of([f"{name} has {'; '.join(changed)}" for name, changed in found.items()], NAMED)
        raise RunError(
            f"{len(found)} of {len(jobs)} runs in {out} were made with other settings: {named}. Choose "
            "another --out, or begin these anew with --restart"
        )


def with_logs_of(other: Path, theirs: list[Job], jobs: list[Job]) -> list[Job]:
    """The same runs, on the logs that another study has collected by the same recipes."""
    there = {job.name: job for job in theirs if job.collects and job.done(other)}
    collecting = [job for job in jobs if job.collects]
    if not collecting:
        raise UsageError("this study collects no logs, so there are none to take: leave --logs away")
    for wanted in collecting:
        if wanted.name not in there or there[wanted.name].recipe != wanted.recipe:
            raise UsageError(
                f"{other} has no finished {wanted.name} by this recipe: have it played, without --logs"
            )
    return [_moved(job, other) if job.data in there else job for job in jobs if job.name not in there]


def _moved(job: Job, other: Path) -> Job:
    """The same job on another study's log; it waits for no other job."""
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


def _viewed(dataset: Dataset, view: Mapping[str, float]) -> Dataset:
    for name, amount in view.items():
        dataset = getattr(dataset, name)(_amount(name, amount, len(dataset)))
    return dataset


def _amount(view: str, amount: float, available: int) -> float:
    """`first` and `last` count transitions; below 1 they are shares, as the other views have them."""
    return max(1, int(amount * available)) if view in ("first", "last") and amount < 1 else amount
