"""The choice: rules that rank the candidates, intervals of their gain, and when no policy is chosen."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from optimist.choosing.estimators import USUAL, estimator
from optimist.errors import UsageError

DRAWS = 2000  # of the bootstrap
COVERED = 0.9  # share of held-out states in which a supported policy acts as the behaviour would
EPISODES = 20  # held out: an interval over fewer is too short
PLAYED = 5  # real episodes of the first policy
TELLING = 0.25  # share of effective episodes: with fewer, importance sampling is too sure of itself
SAME = 0.05  # share of the spread of all values; smaller differences are ignored
KEEP = "keep today's policy, or clone it"
WORSE = "the first policy is worse"


Scores = Mapping[str, np.ndarray]


def ranked(rule: str, scores: Scores) -> list[int]:
    """The numbers of the candidates, the best first; those without a score last. Of equal scores the policy
    with more support is better."""
    check_scored(rule, scores[rule])
    return np.lexsort((-scores["support"], -scores[rule])).tolist()


def check_scored(rule: str, score: np.ndarray) -> None:
    """Raise UsageError if the rule's score is NaN for every candidate."""
    if np.isnan(score).all():
        needs = estimator(rule).needs
        because = f": it needs {needs}" if needs else ""
        raise UsageError(
            f'the rule "{rule}" has no score for any policy{because}; choose another, such as {USUAL}'
        )


class Estimate(NamedTuple):
    """A mean with its 95% interval, if there is one."""

    mean: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:.4g}, {self.high:.4g}]"
        return f"{self.mean:.4g}{interval}"


def estimate(values: np.ndarray, others: np.ndarray | None = None) -> Estimate:
    """The mean over episodes, (episodes,), with a bootstrap interval; above the mean of `others` if they are
    given. One episode has no interval: drawn again and again it shows no spread."""
    random = np.random.default_rng(0)

    def means(each: np.ndarray) -> np.ndarray:
        return each[random.integers(len(each), size=(DRAWS, len(each)))].mean(axis=1)

    both = [values] if others is None else [values, others]
    mean = float(values.mean() - sum(each.mean() for each in both[1:]))
    if min(map(len, both)) < 2:
        return Estimate(mean)
    drawn = means(values) - sum(means(each) for each in both[1:])
    return Estimate(mean, *np.quantile(drawn, [0.025, 0.975]).tolist())


def objection(gain: Estimate | None, fqe: Estimate, weighted: Estimate | None, support: float) -> str | None:
    """Why the log does not show that a policy is better than today's; None if it does. `gain` is FQE
    corrected by held-out outcomes, `fqe` the same without, `weighted` that of importance sampling."""
    if gain is None or gain.low is None:
        return "nothing in the log corrects FQE's estimate of a policy here; try it in real episodes"
    if support < COVERED:
        return (
            f"the log cannot tell: the first policy acts like the behaviour in {support:.0%} of the held-out "
            f"states, and {COVERED:.0%} are needed"
        )
    if gain.high is not None and gain.high < 0:
        return f"{WORSE}: its gain over today's is {gain}"
    if gain.low <= 0:
        return f"its gain over today's policy, {gain}, may be zero; more held-out episodes tell more"
    for name, other in (("FQE without the held-out outcomes", fqe), ("importance sampling", weighted)):
        if other is not None and other.high is not None and other.high < 0:
            return f"the estimators disagree: {name} finds a gain of {other}"
    return None


def doubts(order: Sequence[int], scores: Scores, names: Sequence[str]) -> list[str]:
    """Reasons to doubt the order of the policies, one line each."""
    best, plain, careful, support = order[0], scores["fqe"], scores["supported"], scores["support"]
    lines = []
    if len(plain) == 1:
        lines.append("there is one policy to choose from: a smaller --evaluate-every keeps more")
    spread = float(careful.max() - careful.min())
    favourite = int(np.argmax(plain))
    if spread > 0 and careful[best] - careful[favourite] > SAME * spread and plain.max() > plain[best]:
        lines.append(
            f"the estimators disagree about the order: FQE prefers {names[favourite]}; "
            f"{support[favourite]:.0%} of its actions are within the log's support"
        )
    if len(plain) > 1 and plain.max() - plain.min() <= SAME * max(abs(plain.max()), 1e-9):
        lines.append("FQE cannot tell the policies apart: their values are nearly the same; support decides")
    return lines
