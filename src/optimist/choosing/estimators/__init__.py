"""Estimators score the candidates by the log: the files of this folder, and a user's own, named module:Name.

`select` ranks by the scores of one of them, its rule.
"""

from typing import Any, Protocol

from optimist import plugins

USUAL = "cautious"


class Estimator(Protocol):
    """A class that is created without arguments."""

    about: str  # what the score is, for tables
    needs: str  # without what it has no score; "" if it always has one

    def scores(self, analysis: Any) -> Any:
        """The score of every candidate of an `Analysis`, (C,), higher for a better one; NaN without one."""
        ...


def available() -> list[str]:
    """The names of the package's own, the usual rule and its parts first."""
    first = [USUAL, "supported", "fqe"]
    return [*first, *(name for name in plugins.own("estimators") if name not in first)]


def estimator(name: str) -> Estimator:
    """The estimator of this name."""
    return plugins.find("estimators", name, available())()
