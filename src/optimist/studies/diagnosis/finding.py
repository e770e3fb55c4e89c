"""One line of a diagnosis."""

from typing import NamedTuple

from optimist.errors import OptimistError


class Finding(NamedTuple):
    """One fact. A note needs no action; a problem has the class of error that sets the exit code."""

    text: str
    problem: type[OptimistError] | None = None
    note: bool = False
