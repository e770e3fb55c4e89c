"""Support: in how many of the held-out states the behaviour would act as the candidate does."""

import numpy as np

from optimist.choosing.analysis import Analysis, means


class Support:
    about, needs = "share of held-out states in which the behaviour would act alike", ""

    def scores(self, analysis: Analysis) -> np.ndarray:
        return means(analysis.supported.held)
