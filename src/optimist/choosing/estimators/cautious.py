"""Cautious: the mean of FQE, which overrates actions outside the log, and of what underrates them."""

import numpy as np

from optimist.choosing.analysis import Analysis, means


class Cautious:
    about, needs = "the mean of FQE and of FQE within the log's support", ""

    def scores(self, analysis: Analysis) -> np.ndarray:
        return means(analysis.values.cautious)
