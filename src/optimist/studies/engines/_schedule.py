"""Gives the jobs of a study to a pool of workers: each job starts once the jobs that it needs are done."""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from optimist.studies.job import Job
from optimist.studies.status import note_failure, steps_done
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
    need it."""
    schedule = Schedule(jobs, out, tell)
    progress = Progress(jobs, out)
    try:
        while schedule.waiting or schedule.running:
            ready = schedule.ready(pool)
            schedule.begin(ready)
            pool.start(ready)
            if not schedule.running:
                schedule.give_up()
                break
            progress.show(schedule.done, schedule.running)
            for ended in pool.wait():
                schedule.end(ended)
        progress.show(schedule.done, schedule.running)
    finally:
        progress.close()
        pool.close()
    return schedule.failed


class Schedule:
    """Which of some jobs wait, which run, which are done, and which have failed."""

    def __init__(self, jobs: list[Job], out: Path, tell: Callable[[str], None]):
        self.waiting, self.failed = list(jobs), list[Ended]()
        self.running, self.done = set[str](), set[str]()
        self._before = {name for job in jobs for name in job.needs} - {job.name for job in jobs}
        self._attempts: dict[str, int] = {}
        self._out, self._tell, self._count = out, tell, len(jobs)

    def ready(self, pool: Pool) -> list[Job]:
        """The jobs to start now."""
        done = self.done | self._before
        if pool.keeps_order:
            following = waves(self.waiting, done | self.running)
            return [job for wave in following for job in wave][: pool.free()]
        return [job for job in self.waiting if set(job.needs) <= done][: pool.free()]

    def begin(self, jobs: list[Job]) -> None:
        for job in jobs:
            self.waiting.remove(job)
            self.running.add(job.name)
            self._attempts[job.name] = self._attempts.get(job.name, 0) + 1
            note_failure(job, self._out, "")

    def end(self, ended: Ended) -> None:
        """Count a job that ended as done or failed; if its worker died, it waits again."""
        job, complaint = ended.job, ended.complaint
        self.running.remove(job.name)
        if not complaint:
            self.done.add(job.name)
            self._tell(f"{job.name} is done ({len(self.done)} of {self._count})")
        elif ended.worker_died and self._attempts[job.name] < ATTEMPTS:
            self._tell(f"{job.name}: {complaint}; another worker continues it")
            self.waiting.insert(0, job)
        else:
            self.failed.append(ended)
            note_failure(job, self._out, complaint)
            self._tell(f"{job.name} failed: {complaint}")

    def give_up(self) -> None:
        """Every job that waits needs one that failed."""
        self.failed += [Ended(job, f"{', '.join(job.needs)} failed") for job in self.waiting]


def waves(jobs: list[Job], known: Collection[str] = ()) -> Iterator[list[Job]]:
    """The jobs, each after those that it needs: first those that need only known ones, then those that need
    only these too, and so on. A job that needs an unknown one is left out."""
    left, known = list(jobs), set(known)
    while wave := [job for job in left if set(job.needs) <= known]:
        yield wave
        left = [job for job in left if not set(job.needs) <= known]
        known |= {job.name for job in wave}


class Progress:
    """One progress bar for all runs, in steps; those of active runs are read from their metrics."""

    def __init__(self, jobs: list[Job], out: Path):
        self._jobs, self._out, self._last = {job.name: job for job in jobs}, out, 0.0
        self._steps = {job.name: job.steps() for job in jobs}
        # What the folder of a run that begins anew holds until its worker has deleted it.
        self._old = {job.name: steps_done(job, out) for job in jobs if job.restart}
        # What was last seen of each run; one that waits may have steps from before the study was stopped.
        self._seen = {job.name: self._done(job.name) for job in jobs}
        self._bar = Bar("all runs", sum(self._steps.values()), "step", self._all(())).__enter__()

    def show(self, done: Collection[str], running: Collection[str]) -> None:
        if running and time.monotonic() - self._last < LOOK_SECONDS:
            return
        self._last = time.monotonic()
        self._seen.update({name: self._done(name) for name in running})
        self._bar.update(self._all(done), note=f"{len(done)} of {len(self._jobs)} runs done")

    def _all(self, done: Collection[str]) -> int:
        return sum(steps if name in done else self._seen[name] for name, steps in self._steps.items())

    def _done(self, name: str) -> int:
        steps = steps_done(self._jobs[name], self._out)
        if steps == self._old.get(name):
            return 0
        self._old.pop(name, None)
        return min(self._steps[name], steps)

    def close(self) -> None:
        self._bar.__exit__()
