"""How two studies were done differently, read from the configurations of their matching runs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimist.errors import some_of
from optimist.studies.job import Job
from optimist.training.storage.run_folder import read_config

NAMED = 3  # runs that a line names; the others it counts
ELSEWHERE = ("dataset.path",)  # says where data lies, not what it is


@dataclass(frozen=True)
class Difference:
    """One setting that has two values, and the runs in which it has."""

    setting: str
    first: str
    second: str
    runs: tuple[str, ...]

    def where(self) -> str:
        return some_of(self.runs, NAMED)


def differences(ones: list[Job], one: Path, others: list[Job], other: Path) -> list[Difference]:
    """Of runs that are of the same agent, on the same part, in the same environment."""
    found: dict[tuple[str, str, str], list[str]] = {}
    twins = {_what(job): job for job in others}
    for job in ones:
        twin = twins.get(_what(job))
        if twin is None:
            continue
        before, after = _settings(job.run_folder(one)), _settings(twin.run_folder(other))
        for name in {**before, **after}:
            values = before.get(name, "nothing"), after.get(name, "nothing")
            if values[0] != values[1] and name not in ELSEWHERE:
                found.setdefault((name, *values), []).append(job.name)
    return [Difference(*key, tuple(runs)) for key, runs in found.items()]


def _what(job: Job) -> tuple[str, str, str]:
    """Its environment, its part of the data and its label; players and random play have no label."""
    return job.environment, job.part, job.label or ("the player" if job.plays else job.agent)


def _settings(run: Path) -> dict[str, str]:
    return dict(_flat(read_config(run))) if (run / "config.toml").exists() else {}


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)
