"""Importance: weighted importance sampling of softened policies."""

import numpy as np

from optimist.choosing.analysis import Analysis


class Importance:
    about = "weighted importance sampling of softened policies"
    needs = "discrete actions, and episodes in which the policies would act as the behaviour did"

    def scores(self, analysis: Analysis) -> np.ndarray:
        return analysis.of_weighted(lambda found: found.values[0])
