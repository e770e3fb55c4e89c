"""How often 95% intervals of the cross-chosen best cover its expected value, in simulated studies.

    python docs/results/asymptotic/coverage.py

Curves of five games have 25 evaluations: a mean curve (a peak at a different place in each game, flat, or
rising), one deviation for each run, and noise that lasts for some evaluations. "Kept": the bootstrap draws
the scores and keeps the chosen evaluations. "Again": every draw chooses its evaluations again.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call

from optimist.studies.scores.cross_chosen import CrossChosen
from optimist.studies.scores.statistics import iqm, stratified_bootstrap

GAMES, EVALUATIONS = 5, 25
STUDIES, EXPECTED = 300, 3_000  # studies with intervals; studies whose mean is the expected value
OF_RUN, OF_EVALUATION, LASTS = 0.15, 0.35, 0.7
TIME = np.linspace(0, 1, EVALUATIONS)
PEAKS = zip(np.linspace(0.2, 0.8, GAMES), np.linspace(0.25, 0.8, GAMES), strict=True)
MEANS = {
    "peak": np.stack([1.2 * np.exp(-(((TIME - at) / width) ** 2)) for at, width in PEAKS]),
    "flat": np.ones((GAMES, EVALUATIONS)),
    "rising": np.stack([TIME] * GAMES),
}


def studies(kind, runs, count, random):
    """(studies, games, runs, evaluations)."""
    noise = random.normal(size=(count, GAMES, runs, EVALUATIONS))
    for at in range(1, EVALUATIONS):
        noise[..., at] = LASTS * noise[..., at - 1] + np.sqrt(1 - LASTS**2) * noise[..., at]
    of_runs = OF_RUN * random.normal(size=(count, GAMES, runs, 1))
    return MEANS[kind][None, :, None] + of_runs + OF_EVALUATION * noise


def cross_chosen(curves):
    """(..., runs, evaluations) -> (..., runs)."""
    chosen = (curves.sum(axis=-2, keepdims=True) - curves).argmax(axis=-1)
    return np.take_along_axis(curves, chosen[..., None], axis=-1)[..., 0]


def main():
    random = np.random.default_rng(0)
    print("logs  curves   deviation  kept  again")
    for runs in (3, 5):
        for kind in MEANS:
            found = iqm(cross_chosen(studies(kind, runs, EXPECTED, random)))
            covered = {"kept": 0, "again": 0}
            for number, curves in enumerate(studies(kind, runs, STUDIES, random)):
                scores = cross_chosen(curves).T
                for name, each in (("kept", scores), ("again", CrossChosen(scores, list(curves)))):
                    interval = stratified_bootstrap(iqm, each, repetitions=500, seed=number)
                    covered[name] += interval.low <= found.mean() <= interval.high
            kept, again = (count / STUDIES for count in covered.values())
            print(f"{runs:4}  {kind:7}  {found.std():9.3f}  {kept:4.0%}  {again:5.0%}", flush=True)


if __name__ == "__main__":
    call(__doc__, main)
