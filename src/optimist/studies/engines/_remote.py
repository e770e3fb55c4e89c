"""What engines of clusters share: where the runs are, and this machine's copy of runs at an address."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from optimist.errors import UsageError
from optimist.studies.job import Job
from optimist.studies.status import FILE
from optimist.studies.store import Store, is_address


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


def copy_of(out: Path, options: Remote) -> "LocalCopy | None":
    """This machine's copy of the runs, if they are at an address."""
    return LocalCopy(options.store, out) if options.store else None


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
