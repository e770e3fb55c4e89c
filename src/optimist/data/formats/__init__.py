"""Formats of other programs' logs. The folder is the registry: each file or folder in it is a format.

A format is a module with the members of `Format`; modules whose name begins with an underscore are not
formats. A format of another package is such a module, or a class with these functions as static methods:
`optimist.plugins` finds it by an entry point of `optimist.formats` or as `module:Name`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from optimist import plugins
from optimist.errors import DataError, UsageError

Address = str | Path  # a path, or an address such as gs://bucket/folder
TABLES = ("csv", "arrow", "feather")  # files that people may take for formats


class Summary(Protocol):
    """The result of reading or writing logs."""

    def lines(self) -> list[str]:
        """The counts, then a line for each kind of loss or change."""
        ...


class Report(Protocol):
    """The result of verifying logs."""

    problems: list[str]  # a line for each

    @property
    def heads(self) -> Sequence[str]:
        """The names of the columns of `rows`."""
        ...

    @property
    def rows(self) -> Sequence[Sequence[str]]:
        """A table of the contents of the logs; it may be empty."""
        ...


class Format(Protocol):
    """One format. Its options are frozen dataclasses whose fields are `Annotated` with their help."""

    ReadOptions: Any
    WriteOptions: Any

    @staticmethod
    def detect(address: Address) -> bool:
        """Whether this looks like logs of this format, complete or not."""
        ...

    @staticmethod
    def read(
        address: Address, out: Address, options: Any, progress: Callable[[int, int], None] | None
    ) -> Summary:
        """Convert the logs to the dataset folder `out`, or raise DataError."""
        ...

    @staticmethod
    def write(dataset: Any, out: Address, options: Any) -> Summary:
        """Write a dataset, or a view, as logs of this format."""
        ...

    @staticmethod
    def verify(address: Address) -> Report:
        """Read every byte and report every problem."""
        ...


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
    return cast(Format, plugins.find("formats", own if own in plugins.own("formats") else name, available()))


def able_to(action: str, name: str) -> Format:
    """The format with this name; UsageError if it lacks this function: one of a user may only read."""
    format = find(name)
    if not hasattr(format, action):
        raise UsageError(f'the format "{name}" can only be read: it has no function {action}')
    return format


def detected(address: Address) -> str | None:
    """The name of the format of the logs at this address; None if no format recognises them."""
    return next((name for name in _all() if find(name).detect(address)), None)


def detect(address: Address) -> str:
    """The name of the format of the logs at this address, or a DataError."""
    found = detected(address)
    if found is None and "://" not in str(address) and not Path(address).exists():
        raise DataError(f"{address} does not exist; check its spelling")
    if found is None and (inside := _file_inside(address)):
        raise DataError(f"{address} is a folder: name a file in it, such as {inside}")
    if found is None:
        raise DataError(
            f"{address} is in none of the known formats ({', '.join(_all())}); name one, or convert it to a "
            ".csv or .parquet file"
        )
    return found


def _file_inside(address: Address) -> Path | None:
    """The first file in a folder that holds nothing but logs, such as the one that an export wrote there."""
    folder = Path(address)
    files = sorted(path for path in folder.iterdir() if path.name[0] != ".") if folder.is_dir() else []
    return files[0] if files and all(path.is_file() and detected(path) for path in files) else None


def _all() -> list[str]:
    return [*available(), *plugins.names("formats")]
