"""The choice: rules that rank the candidates, intervals, and the cases in which the log cannot tell."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from optimist.errors import UsageError, did_you_mean

DRAWS = 2000  # of the bootstrap
COVERED = 0.9  # share of held-out states in which a supported policy acts as the behaviour would
SAME = 0.05  # share of the spread of all values; smaller differences are ignored


class Rule(NamedTuple):
    """A rule: the name of its score, (C,), its sign, its description, and what it needs."""

    score: str
    sign: int
    about: str
    needs: str = ""


VALUES = "an agent with values of actions"


RULES = {
    "cautious": Rule("cautious", 1, "the mean of FQE and of FQE within the log's support"),
    "supported": Rule(
        "supported", 1, "FQE; an action that the behaviour would not take has the lowest value"
    ),
    "fqe": Rule("fqe", 1, "fitted Q evaluation"),
    "support": Rule("support", 1, "share of held-out states in which the behaviour would act alike"),
    "sbv": Rule(
        "bellman_error", -1, "Supervised Bellman Validation: error of the agent's own values", VALUES
    ),
    "bvft": Rule("tournament_loss", -1, "batch value-function tournament of the agents' own values", VALUES),
    "drift": Rule(
        "overestimation",
        -1,
        "the agent's own values should be near the returns in the log",
        f"{VALUES}, and episodes whose returns are known: they end with a terminal step, or are long",
    ),
    "agreement": Rule(
        "agreement", 1, "how often the seeds of a run choose the same action", "several seeds on one log"
    ),
    "importance": Rule(
        "importance",
        1,
        "weighted importance sampling; needs logged probabilities",
        "logged probabilities, and episodes in which the policies would act as the behaviour did",
    ),
}
USUAL = "cautious"
Scores = Mapping[str, np.ndarray]


def check_rule(rule: str) -> None:
    if rule not in RULES:
        raise UsageError(f'there is no rule "{rule}": {did_you_mean(rule, RULES)}')


def preference(rule: str, scores: Scores) -> np.ndarray:
    """The score of a rule as a preference: more is better; NaN for a candidate without a score."""
    found = scores[RULES[rule].score]
    return -np.abs(found) if RULES[rule].sign < 0 else found


def ranked(rule: str, scores: Scores) -> list[int]:
    """The numbers of the candidates, the best first; those without a score last. Of equal scores the policy
    with more support is better."""
    wanted = preference(rule, scores)
    check_scored(rule, scores)
    return np.lexsort((-scores["support"], -wanted)).tolist()


def check_scored(rule: str, scores: Scores) -> None:
    """Raise UsageError if the rule's score is among `scores` but is NaN for every candidate."""
    score, needs = RULES[rule].score, RULES[rule].needs
    if score in scores and np.isnan(scores[score]).all():
        because = f": it needs {needs}" if needs else ""
        raise UsageError(
            f'the rule "{rule}" has no score for any policy{because}; choose another, such as {USUAL}'
        )


def interval(values: np.ndarray) -> tuple[float | None, float | None]:
    """The 95% bootstrap interval of the mean over held-out episodes, (episodes,). One episode has none:
    drawn again and again it shows no spread."""
    if len(values) < 2:
        return None, None
    drawn = np.random.default_rng(0).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def doubts(order: Sequence[int], scores: Scores, names: Sequence[str]) -> list[str]:
    """Reasons to doubt the choice, one line each."""
    best, plain, careful, support = order[0], scores["fqe"], scores["supported"], scores["support"]
    lines = []
    if len(plain) == 1:
        lines.append("there is one policy to choose from: a smaller --evaluate-every keeps more")
    if support.max() < COVERED:
        lines.append(
            f"the log cannot tell: no policy acts like the behaviour in {COVERED:.0%} of the states "
            f"(the best does in {support.max():.0%})"
        )
    spread = float(careful.max() - careful.min())
    favourite = int(np.argmax(plain))
    if spread > 0 and careful[best] - careful[favourite] > SAME * spread and plain.max() > plain[best]:
        lines.append(
            f"the estimators disagree: FQE alone prefers {names[favourite]}; "
            f"{support[favourite]:.0%} of its actions are within the log's support"
        )
    if len(plain) > 1 and plain.max() - plain.min() <= SAME * max(abs(plain.max()), 1e-9):
        lines.append("FQE cannot tell the policies apart: their values are nearly the same; support decides")
    return lines
