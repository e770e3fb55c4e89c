"""Where the nodes of a cluster find the runs of a study: in a folder that all of them see, or at an address.

A place is sent to the nodes, and performs jobs there.
"""

import hashlib
import socket
from dataclasses import dataclass
from pathlib import Path

from optimist import plugins
from optimist.data.machine import cache_folder
from optimist.errors import OptimistError
from optimist.studies.engines.local import performed
from optimist.studies.engines.work import LEAVING_SECONDS, modules_of, work_at
from optimist.studies.job import Job
from optimist.studies.status import FILE
from optimist.studies.store import Store
from optimist.training.terminal import Interrupted


@dataclass(frozen=True)
class SharedFolder:
    """A folder under the same path on every node."""

    out: Path
    mark: str  # the hash of its study.json

    def performed(self, job: Job) -> str:
        """Run the job on this node; return its error, or ""."""
        if mark_of(self.out) != self.mark:
            return (
                f"{socket.gethostname()} does not see the study in {self.out}: choose an --out that all "
                "nodes share, or a --store"
            )
        return performed(job, self.out, LEAVING_SECONDS)


def mark_of(out: Path) -> str:
    """A hash of study.json: on a node without the shared disk it differs or is empty."""
    try:
        return hashlib.sha256((out / FILE).read_bytes()).hexdigest()
    except OSError:
        return ""


@dataclass(frozen=True)
class Address:
    """An address, such as s3://bucket/study; nodes keep what they work on in a local folder."""

    address: str
    scratch: Path | None = None  # None is a folder in the user's cache

    def performed(self, job: Job) -> str:
        """Run the job on this node; return its error, or ""."""
        plugins.allow(modules_of(job))  # the user's own command named them
        scratch = self.scratch or cache_folder() / "work"
        try:
            work_at(self.address, scratch, run=job.name, restart=job.restart)
        except Interrupted:
            raise
        except OptimistError as problem:
            return str(problem).removeprefix(f"{job.name}: ")
        return ""


class LocalCopy:
    """This machine's copy of a study whose runs are at an address: its folder shows what is done."""

    def __init__(self, address: str, out: Path):
        self._store, self._out = Store(address), out

    def bring_begun(self, jobs: list[Job]) -> None:
        """Bring the runs that were begun there and are not done here."""
        there = {path.rpartition("/")[0] for path in self._store.listed()}
        for job in jobs:
            if job.run_folder(Path()).as_posix() in there and not job.done(self._out):
                self.bring(job.name)

    def send_list(self) -> None:
        """Send the list of runs, which the nodes read."""
        self._store.send_file(FILE, self._out)

    def bring(self, name: str) -> None:
        """Bring a run as it is there now."""
        self._store.bring(name, self._out / name, exactly=True)
