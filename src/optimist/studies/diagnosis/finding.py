"""One line of a diagnosis."""

from typing import NamedTuple

from optimist.errors import OptimistError


class Finding(NamedTuple):
    """A fact. A note needs no action; a problem has the error whose exit code it gives."""

    text: str
    problem: type[OptimistError] | None = None
    note: bool = False
