"""Runs that learned nonsense on the way: their scores count, but whoever reads them must know."""

from collections.abc import Sequence
from pathlib import Path

from optimist.errors import some_of
from optimist.studies.job import Job
from optimist.training.storage.run_folder import read_alarms

NAMED = 5  # runs that a warning names; the others it counts


def diverged(jobs: Sequence[Job], out: Path) -> str:
    """'runs/a (2 seeds, the first at step 104,750)' for every finished run whose estimates were beyond any
    possible return; nothing where there is none."""
    found = {job.name: read_alarms(job.run_folder(out)) for job in jobs if job.done(out)}
    return some_of([f"{name} ({_when(alarms)})" for name, alarms in found.items() if alarms], NAMED)


def _when(alarms: dict[int, int]) -> str:
    return f"{len(alarms)} seed{'s' * (len(alarms) > 1)}, the first at step {min(alarms.values()):,}"
