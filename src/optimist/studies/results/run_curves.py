"""The first and last values of the estimators of one run."""

from collections.abc import Sequence

import numpy as np

from optimist.studies.sheet import Cell, Sheet
from optimist.training.measures import estimators_in, shown, title
from optimist.training.storage.metrics import curves_of


def estimators_of(rows: Sequence[dict]) -> list[str]:
    """The names of the estimators that the run logged."""
    return list(dict.fromkeys(name for row in rows for name in estimators_in(row)))


def estimator_sheet(rows: Sequence[dict]) -> Sheet:
    """The first and the last value of each estimator, means over the seeds."""
    table = []
    for name in estimators_of(rows):
        curves = curves_of(rows, name).values()
        first, last = (float(np.mean([curve.values[at] for curve in curves])) for at in (0, -1))
        table.append([title(name), *(Cell(shown(name, value), value) for value in (first, last))])
    return Sheet("how it went, without an environment", ["estimator", "first", "last"], table)
