"""Formats of other programs' logs. The folder is the registry: each file or folder in it is a format.

A format is a module with the members of `Source`; modules whose name begins with an underscore are not
formats. A format of another package is such a module, or a class with these functions as static methods:
`optimist.plugins` finds it by an entry point of `optimist.formats` or as `module:Name`.
"""

from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from optimist import plugins
from optimist.data.formats._incoming import Address, Imported, Progress, Report, bring_in, checked
from optimist.data.rules.log import Asked, Log
from optimist.errors import DataError, UsageError

__all__ = ["Asked", "Format", "Log", "Report", "Source", "available", "detect", "detected", "find"]
TABLES = ("csv", "arrow", "feather")  # files that people may take for formats


class Source(Protocol):
    """What a format gives. It may also have `write(dataset, out, options)`, which writes a dataset or a view
    and returns an object with `lines()`, and its `WriteOptions`; and a `verify(address)` that finds more than
    an import does. Options are frozen dataclasses whose fields are `Annotated` with their help."""

    ReadOptions: Any

    @staticmethod
    def detect(address: Address) -> bool:
        """Whether this looks like logs of this format, complete or not."""
        ...

    @staticmethod
    def open(address: Address, options: Any) -> Log:
        """The log at this address, or a DataError."""
        ...


class Format:
    """A format by its name: what it gives, and the import and the check that follow from that."""

    def __init__(self, name: str, source: Any):
        self.name, self.source = name, source
        self.detect, self.open, self.ReadOptions = source.detect, source.open, source.ReadOptions
        self.WriteOptions: Any = getattr(source, "WriteOptions", None)

    def read(
        self, address: Address, out: Address, options: Any = None, progress: Progress | None = None
    ) -> Imported:
        """Write the log into the new folder `out` as a dataset."""
        with closing(self.open(address, options or self.ReadOptions())) as log:
            origin = {"format": self.name, "source": Path(address).name, **log.provenance}
            return bring_in(log, out, origin, progress)

    def verify(self, address: Address) -> Report:
        """Read all of the log; most formats report the first problem that an import would raise."""
        if hasattr(self.source, "verify"):
            return self.source.verify(address)
        return checked(lambda: self.open(address, self.ReadOptions()))

    def write(self, dataset: Any, out: Address, options: Any = None) -> Any:
        """Write a dataset, or a view, as logs of this format; the result has `lines()`."""
        self.check_can_write()
        return self.source.write(dataset, out, options or self.WriteOptions())

    def check_can_write(self) -> None:
        """Raise UsageError for a format that can only be read."""
        if not hasattr(self.source, "write"):
            raise UsageError(f'the format "{self.name}" can only be read: it has no function write')


def available() -> list[str]:
    """The names of the formats in this folder: `dqn_replay/` is "dqn-replay"."""
    return [name.replace("_", "-") for name in plugins.own("formats")]


def find(name: str) -> Format:
    """The format with this name, from this folder or another package."""
    if name.lower() in TABLES:
        raise UsageError(
            f'there is no format "{name}": the format parquet reads such files too; name parquet'
        )
    own = name.replace("-", "_")
    if own in plugins.own("formats"):
        return Format(own.replace("_", "-"), plugins.find("formats", own))
    return Format(name, plugins.find("formats", name, available()))


def detected(address: Address) -> str | None:
    """The name of the format of the logs at this address; None if no format recognises them."""
    return next((name for name in _all() if find(name).detect(address)), None)


def detect(address: Address) -> str:
    """The name of the format of the logs at this address, or a DataError."""
    if (name := detected(address)) is not None:
        return name
    if "://" not in str(address) and not Path(address).exists():
        raise DataError(f"{address} does not exist; check its spelling")
    if inside := _file_inside(address):
        raise DataError(f"{address} is a folder: name a file in it, such as {inside}")
    raise DataError(
        f"{address} is in none of the known formats ({', '.join(_all())}); name one, or convert it to a "
        ".csv or .parquet file"
    )


def _file_inside(address: Address) -> Path | None:
    """The first file in a folder that holds nothing but logs, such as the one that an export wrote there."""
    folder = Path(address)
    files = sorted(path for path in folder.iterdir() if path.name[0] != ".") if folder.is_dir() else []
    return files[0] if files and all(path.is_file() and detected(path) for path in files) else None


def _all() -> list[str]:
    return [*available(), *plugins.names("formats")]
