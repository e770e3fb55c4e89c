"""Estimators score the candidates by the log: the files of this folder, and a user's own, named module:Name.

`select` ranks by the scores of one of them, its rule.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any, Protocol

from optimist import plugins
from optimist.errors import UsageError

USUAL = "cautious"


class Estimator(Protocol):
    """A class that is created without arguments."""

    about: str  # what the score is, for tables
    needs: str  # without what it has no score; "" if it always has one

    def scores(self, analysis: Any) -> Any:
        """The score of every candidate of an `Analysis`, (C,), higher for a better one; NaN without one."""
        ...


@cache
def available() -> tuple[str, ...]:
    """The names of the package's own; those whose scores agree most with real returns come first."""
    names = {module.name for module in pkgutil.iter_modules(__path__)}
    first = [name for name in (USUAL, "supported", "fqe") if name in names]
    return (*first, *sorted(names - set(first)))


def estimator(name: str) -> Estimator:
    """The estimator of this name."""
    if name in available():
        kind = getattr(importlib.import_module(f"{__name__}.{name}"), name.title())
    else:
        kind = plugins.find("estimators", name, available())
    if not all(hasattr(kind, part) for part in ("about", "needs", "scores")):
        raise UsageError(f"{name} is not an estimator: it needs about, needs and scores")
    return kind()
