"""The folder is the registry: each file or folder here is a format that logs of other programs have.

A format is a module that offers what `Format` lists; `read` and `ReadOptions`, or `write` and `WriteOptions`,
may be absent where a format is only written or only read. A name with an underscore before it is no format.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from optimist import plugins
from optimist.errors import DataError

Address = str | Path  # a path, or an address such as gs://bucket/folder


class Summary(Protocol):
    """What was read or written."""

    def lines(self) -> list[str]:
        """The counts, and then a line for each thing that was left out or changed."""
        ...


class Report(Protocol):
    """What was found in logs."""

    problems: list[str]  # a line for each

    @property
    def heads(self) -> Sequence[str]:
        """The names of the columns of `rows`."""
        ...

    @property
    def rows(self) -> Sequence[Sequence[str]]:
        """A table of what the logs hold; it may be empty."""
        ...


class Format(Protocol):
    """One format. Options are frozen dataclasses, each field is `Annotated` with its help."""

    ReadOptions: Any
    WriteOptions: Any

    @staticmethod
    def detect(address: Address) -> bool:
        """Whether this looks like logs of this format, whole or not."""
        ...

    @staticmethod
    def read(
        address: Address, out: Address, options: Any, progress: Callable[[int, int], None] | None
    ) -> Summary:
        """Make the dataset folder `out` of the logs, or raise DataError."""
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
    """The names of all formats, read off the folder: `dqn_replay/` is "dqn-replay"."""
    return [
        module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"
    ]


def find(name: str) -> Format:
    """The format of this name, or a user's own: "my_package:Format", or an entry point."""
    if name.replace("_", "-") in available():
        return cast(Format, importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))
    return cast(Format, plugins.find("formats", name, available()))


def about(name: str) -> str:
    """One line about a format."""
    return (find(name).__doc__ or "").partition("\n")[0]


def detected(address: Address) -> str | None:
    """The name of the format that the logs at this address have, if one recognises them."""
    names = (*available(), *plugins.names("formats"))
    return next((name for name in names if find(name).detect(address)), None)


def detect(address: Address) -> str:
    """The same, or a DataError."""
    found = detected(address)
    if found is None:
        raise DataError(f"{address} is in none of the known formats ({', '.join(available())}); name one")
    return found
