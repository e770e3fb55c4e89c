"""What engines share: a schedule of jobs on a pool of workers, and the options of runs at an address."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from optimist.errors import UsageError
from optimist.studies.job import Job
from optimist.studies.status import note_failure, steps_done, waves
from optimist.studies.store import Store, is_address
from optimist.training.terminal import Bar, say

LOOK_SECONDS = 2  # between updates of the progress bar
ATTEMPTS = 3  # for a job whose worker died; a job that raises an error is not tried again


@dataclass(frozen=True)
class Ended:
    """A job that has ended, with or without an error."""

    job: Job
    complaint: str = ""  # why it failed
    worker_died: bool = False


class Detached(Exception):
    """Every run is in a queue, and this process is to leave them there."""


class Pool(Protocol):
    """Workers that jobs can be given to."""

    keeps_order: bool  # does it start a job after those that the job needs? Then it is given all at once

    def free(self) -> int:
        """The number of jobs that can be started now."""
        ...

    def start(self, jobs: list[Job]) -> None:
        """Start these jobs, at most `free()` of them."""
        ...

    def wait(self) -> list[Ended]:
        """The jobs that have ended since the last call; waits a moment if there are none."""
        ...

    def close(self) -> None: ...


def perform_all(jobs: list[Job], out: Path, pool: Pool, tell: Callable[[str], None] = say) -> list[Ended]:
    """Run every job, prerequisites first, and return those that failed. A failure only prevents the jobs that
    need it; a job whose worker died is tried again."""
    waiting, running, done = list(jobs), set[str](), set[str]()
    before = {name for job in jobs for name in job.needs} - {job.name for job in jobs}  # they are done
    failed, attempts, progress = list[Ended](), Counter[str](), Progress(jobs, out)
    try:
        while waiting or running:
            ready = [job for job in waiting if set(job.needs) <= done | before]
            if pool.keeps_order:
                ready = [job for wave in waves(waiting, done | before | running) for job in wave]
            ready = ready[: pool.free()]
            for job in ready:
                waiting.remove(job)
                running.add(job.name)
                attempts[job.name] += 1
                note_failure(job, out, "")
            pool.start(ready)
            if not running:  # every job that waits needs one that failed
                failed += [Ended(job, f"{', '.join(job.needs)} failed") for job in waiting]
                break
            progress.show(done, running)
            for ended in pool.wait():
                job, complaint = ended.job, ended.complaint
                running.remove(job.name)
                if not complaint:
                    done.add(job.name)
                    tell(f"{job.name} is done ({len(done)} of {len(jobs)})")
                elif ended.worker_died and attempts[job.name] < ATTEMPTS:
                    tell(f"{job.name}: {complaint}; another worker continues it")
                    waiting.insert(0, job)
                else:
                    failed.append(ended)
                    note_failure(job, out, complaint)
                    tell(f"{job.name} failed: {complaint}")
        progress.show(done, running)
    finally:
        progress.close()
        pool.close()
    return failed


class Progress:
    """One progress bar for all runs, in steps; those of active runs are read from their metrics."""

    def __init__(self, jobs: list[Job], out: Path):
        self._jobs, self._out, self._last = {job.name: job for job in jobs}, out, 0.0
        self._steps = {job.name: job.steps() for job in jobs}
        # What the folder of a run that begins anew holds until its worker has deleted it.
        self._old = {job.name: steps_done(job, out) for job in jobs if job.restart}
        # What was last seen of each run; one that waits may have steps from before the study was stopped.
        self._seen = {job.name: self._done(job.name) for job in jobs}
        self._bar = Bar("all runs", sum(self._steps.values()), "step", sum(self._seen.values())).__enter__()

    def show(self, done: Collection[str], running: Collection[str]) -> None:
        if running and time.monotonic() - self._last < LOOK_SECONDS:
            return
        self._last = time.monotonic()
        self._seen.update({name: self._done(name) for name in running})
        steps = sum(most if name in done else self._seen[name] for name, most in self._steps.items())
        self._bar.update(steps, note=f"{len(done)} of {len(self._jobs)} runs done")

    def _done(self, name: str) -> int:
        steps = steps_done(self._jobs[name], self._out)
        if steps == self._old.get(name):
            return 0
        self._old.pop(name, None)
        return min(self._steps[name], steps)

    def close(self) -> None:
        self._bar.__exit__()


@dataclass(frozen=True)
class Remote:
    """Options of an engine whose nodes need not share a file system."""

    store: Annotated[str | None, "where the runs are, such as s3://bucket/study; none is --out"] = None
    scratch: Annotated[str | None, "with --store: a local folder; none is in the user's cache"] = None

    def __post_init__(self):
        if self.scratch and not self.store:
            raise UsageError("--scratch is for runs at an address: add --store, or leave out --scratch")
        if self.store and not is_address(self.store):
            raise UsageError(f"--store {self.store} is not an address: name one, such as s3://bucket/study")

    @property
    def scratch_folder(self) -> Path | None:
        return Path(self.scratch).absolute() if self.scratch else None

    @property
    def place(self) -> Store | None:
        """Where the runs are, if they are at an address."""
        return Store(self.store) if self.store else None


def bring(jobs: list[Job], out: Path, options: Remote) -> None:
    """Bring the runs that were begun at the study's address and are not done here: the folder on this machine
    is a copy that shows what is done."""
    if place := options.place:
        begun = {path.rpartition("/")[0] for path in place.listed()}
        for job in jobs:
            if job.run_folder(Path()).as_posix() in begun and not job.done(out):
                place.bring(job.name, out / job.name, exactly=True)
