"""Supported: fitted Q evaluation within the log's support."""

import numpy as np

from optimist.choosing.analysis import Analysis, means


class Supported:
    about, needs = "FQE; an action that the behaviour would not take has the lowest value", ""

    def scores(self, analysis: Analysis) -> np.ndarray:
        return means(analysis.values.supported)
