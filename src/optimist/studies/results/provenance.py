"""Versions and divergence of the runs of a study, read from their folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from optimist.errors import some_of
from optimist.studies.job import Job
from optimist.training.storage.alarms import Alarm, read_alarms
from optimist.training.storage.code_versions import read_versions as versions_of_run

NAMED = 3  # runs that a line names; the others are counted
NAMED_DIVERGED = 5
OF_ITS_GAME = ("dataset", "rom_md5")  # these differ between games in any study


@dataclass(frozen=True)
class Version:
    """The versions of one package or device, each with its runs; the most common version is first."""

    name: str
    runs: dict[str, list[str]]

    @property
    def mixed(self) -> bool:
        return len(self.runs) > 1

    def in_words(self) -> str:
        """'jax 0.10.2 in 298 runs, 0.11.0 in 2 (runs/a, runs/b)'."""
        first, *others = self.runs.items()
        counts = [f"{first[0]} in {len(first[1])} runs"]
        counts += [f"{version} in {len(names)} ({some_of(names, NAMED)})" for version, names in others]
        return f"{self.name} {', '.join(counts)}"


def read_versions(done: Sequence[Job], out: Path) -> list[Version]:
    """The versions of every finished run; "unknown" for runs without versions.json."""
    found: dict[str, dict[str, list[str]]] = {}
    by_run = {job.name: versions_of_run(job.run_folder(out)) for job in done}
    named = dict.fromkeys(name for versions in by_run.values() for name in versions)
    for name, (run, versions) in product(named, by_run.items()):
        if name not in OF_ITS_GAME and (name in versions or not versions):
            found.setdefault(name, {}).setdefault(versions.get(name, "unknown"), []).append(run)
    return [
        Version(name, dict(sorted(runs.items(), key=lambda item: -len(item[1]))))
        for name, runs in found.items()
    ]


def diverged(done: Sequence[Job], out: Path) -> str:
    """'runs/a (2 seeds, the first at step 104,750)' for every finished run with alarms; "" if there is
    none."""
    found = {job.name: read_alarms(job.run_folder(out)) for job in done}
    return some_of([f"{name} ({_when(alarms)})" for name, alarms in found.items() if alarms], NAMED_DIVERGED)


def _when(alarms: dict[int, Alarm]) -> str:
    first = min(alarm.step for alarm in alarms.values())
    return f"{len(alarms)} seed{'s' * (len(alarms) > 1)}, the first at step {first:,}"
