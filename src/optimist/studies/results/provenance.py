"""Versions, settings and divergence of the runs of a study, read from their folders."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from optimist.errors import some_of
from optimist.studies.job import Job
from optimist.training.storage.alarms import Alarm, read_alarms
from optimist.training.storage.code_versions import read_versions as versions_of_run
from optimist.training.storage.run_folder import read_config

NAMED = 3  # runs that a line names; the others are counted
NAMED_DIVERGED = 5
OF_ITS_GAME = ("dataset", "rom_md5")  # these differ between games in any study
ELSEWHERE = ("dataset.path",)  # the location of the data, not its content


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


def read_versions(jobs: Sequence[Job], out: Path) -> list[Version]:
    """The versions of every finished run; "unknown" for runs without versions.json."""
    found: dict[str, dict[str, list[str]]] = {}
    by_run = {job.name: versions_of_run(job.run_folder(out)) for job in jobs if job.done(out)}
    named = dict.fromkeys(name for versions in by_run.values() for name in versions)
    for name, (run, versions) in product(named, by_run.items()):
        if name not in OF_ITS_GAME and (name in versions or not versions):
            found.setdefault(name, {}).setdefault(versions.get(name, "unknown"), []).append(run)
    return [
        Version(name, dict(sorted(runs.items(), key=lambda item: -len(item[1]))))
        for name, runs in found.items()
    ]


@dataclass(frozen=True)
class Difference:
    """One setting with two values, and the runs in which it differs."""

    setting: str
    first: str
    second: str
    runs: tuple[str, ...]

    def where(self) -> str:
        return some_of(self.runs, NAMED)


def differences(ones: list[Job], one: Path, others: list[Job], other: Path) -> list[Difference]:
    """Settings that differ between finished runs of the same agent, part of the data and environment. Where
    each seed has a run of its own, runs of the same seed are compared: another seed has another log."""
    found: dict[tuple[str, str, str], list[str]] = {}
    mine, theirs = _finished(ones, one), _finished(others, other)
    for what, runs in mine.items():
        twins = theirs.get(what, {})
        same = [(seeds, seeds) for seeds in runs if seeds in twins]
        for seeds, its in same or zip(runs, twins, strict=False):
            before, after = _settings(runs, seeds, one), _settings(twins, its, other)
            for name in {**before, **after}:
                values = before.get(name, "nothing"), after.get(name, "nothing")
                if values[0] != values[1] and name not in ELSEWHERE:
                    found.setdefault((name, *values), []).append(runs[seeds].name)
    return [Difference(*key, tuple(runs)) for key, runs in found.items()]


def _finished(jobs: list[Job], out: Path) -> dict[tuple, dict[tuple[int, ...], Job]]:
    """The finished runs by environment, part of the data and label, and by their seeds; players and random
    play have no label."""
    found: dict[tuple, dict[tuple[int, ...], Job]] = {}
    for job in (job for job in jobs if job.done(out)):
        what = job.environment, job.part, job.label or ("the player" if job.plays else job.agent)
        found.setdefault(what, {})[job.seeds] = job
    return found


def _settings(runs: dict[tuple[int, ...], Job], seeds: tuple[int, ...], out: Path) -> dict[str, str]:
    """The settings of the run of these seeds. As its seeds it has those of all runs of its kind."""
    configs = {each: read_config(job.run_folder(out)) for each, job in runs.items()}
    every = [seed for config in configs.values() for seed in config.get("seeds", ())]
    return dict(_flat({**configs[seeds], **({"seeds": every} if every else {})}))


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)


def diverged(jobs: Sequence[Job], out: Path) -> str:
    """'runs/a (2 seeds, the first at step 104,750)' for every finished run with alarms; "" if there is
    none."""
    found = {job.name: read_alarms(job.run_folder(out)) for job in jobs if job.done(out)}
    return some_of([f"{name} ({_when(alarms)})" for name, alarms in found.items() if alarms], NAMED_DIVERGED)


def _when(alarms: dict[int, Alarm]) -> str:
    first = min(alarm.step for alarm in alarms.values())
    return f"{len(alarms)} seed{'s' * (len(alarms) > 1)}, the first at step {first:,}"
