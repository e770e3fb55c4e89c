"""`optimist study run --dry-run`: a study's runs, and the device time, memory and disk that they take."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from optimist.cli.tables import grid_table
from optimist.errors import UsageError, some_of
from optimist.studies.job import Job
from optimist.studies.rates import Estimate, estimates
from optimist.studies.sheet import print_sheet
from optimist.studies.status import FILE
from optimist.training.memory import host_bytes

NAMED = 3  # runs that a line names; it counts the others


def print_estimates(
    title: str, jobs: list[Job], out: Path, *, rates: str | None = None, price: float | None = None
) -> None:
    """Print the grid, and what its unfinished runs will take."""
    print_sheet(grid_table(title, jobs))
    left = [job for job in jobs if not job.done(out)]
    if not left:
        print("all of them are done already")
    elif len(left) < len(jobs):
        print(f"{len(jobs) - len(left)} of {len(jobs)} runs are done already; the others take:")
    for line in lines(left, estimates(left, _studies(out, rates)), out, price):
        print(line)


def _studies(out: Path, rates: str | None) -> list[Path]:
    """The studies to learn from: those that the user named, or this one and its neighbours."""
    if rates is None:
        return sorted({out, *(path.parent for path in out.parent.glob(f"*/{FILE}"))})
    named = [Path(name) for name in rates.split(",")]
    for folder in named:
        if not (folder / FILE).exists():
            raise UsageError(f"--rates {folder} is not a study's folder: it has no {FILE}")
    return named


def lines(jobs: list[Job], found: Sequence[Estimate], out: Path, price: float | None = None) -> list[str]:
    """What the jobs take, in words."""
    return [_time(jobs, found, price), _memory(found), _disk(found, out)] if jobs else []


def _time(jobs: list[Job], found: Sequence[Estimate], price: float | None) -> str:
    known = [each.device_seconds for each in found if each.device_seconds is not None]
    unknown = [job.name for job, each in zip(jobs, found, strict=True) if each.device_seconds is None]
    if not known:
        return (
            "device time: unknown, because no run with these settings was measured; "
            "--rates FOLDER names other studies to learn from"
        )
    hours = sum(known) / 3600
    devices = ", ".join(sorted({each.device for each in found if each.device})) or "one device"
    line = f"device time: {_hours(hours)} of {devices}, by the measured rates of such runs"
    line += f"; at {price:g} an hour {hours * price:,.2f}" if price is not None else ""
    if unknown:
        line += f"; unknown for {len(unknown)} of {len(jobs)} runs: {some_of(unknown, NAMED)}"
    return line


def _hours(hours: float) -> str:
    return f"{hours:,.1f} hours" if hours >= 1 else f"{60 * hours:,.1f} minutes"


def _memory(found: Sequence[Estimate]) -> str:
    known = [each.memory for each in found if each.memory]
    here = f"this machine has {_size(host_bytes())}, which the runs at one time share"
    return f"memory: {f'at most {_size(max(known))} a run' if known else 'unknown'}; {here}"


def _disk(found: Sequence[Estimate], out: Path) -> str:
    known = [each.disk for each in found if each.disk]
    existing = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    here = f"{_size(shutil.disk_usage(existing).free)} are free at {existing}"
    missing = f" for {len(known)} of {len(found)} runs" if 0 < len(known) < len(found) else ""
    return f"disk: {f'{_size(sum(known))}{missing}' if known else 'unknown'}; {here}"


def _size(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.1f} MiB"
