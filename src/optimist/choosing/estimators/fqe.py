"""FQE: fitted Q evaluation (Le et al. 2019)."""

import numpy as np

from optimist.choosing.analysis import Analysis, means


class Fqe:
    about, needs = "fitted Q evaluation", ""

    def scores(self, analysis: Analysis) -> np.ndarray:
        return means(analysis.values.fqe)
