"""The folder is the registry: each file or folder here is a format that logs of other programs have.

A format is a module that offers what `Format` lists; a name with an underscore before it is no format. Those
of other packages are modules too, or classes with these functions as static methods: `optimist.plugins` finds
them by the entry points `optimist.formats` and as `module:Name`.
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
    """The format of this name: one of this folder, or of another package."""
    known = available()
    if name.replace("_", "-") not in known:
        return cast(Format, plugins.find("formats", name, known))
    return cast(Format, importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))


def detected(address: Address) -> str | None:
    """The name of the format that the logs at this address have, if one recognises them."""
    return next((name for name in _all() if find(name).detect(address)), None)


def detect(address: Address) -> str:
    """The same, or a DataError."""
    found = detected(address)
    if found is None:
        raise DataError(f"{address} is in none of the known formats ({', '.join(_all())}); name one")
    return found


def _all() -> list[str]:
    return [*available(), *plugins.names("formats")]
