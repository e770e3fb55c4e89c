"""Whether the logged probabilities of actions can be right: two sums that they must come to.

The log's policy took A_t with the probability p_t that the log names. Then, but for chance,

- the sum of 1 / p_t over the steps with A_t = a is at most the number of steps in which a could be chosen;
- the sum of (1 - p_t) / p_t over the steps with p_t > 1/2 is at most the number of the other steps: it says
  how often another action was taken where one had more than half.

The first fails if probabilities are too small or belong to other actions, the second if they are too large,
such as 0.9 in every step. Both hold for every policy that chose by what it logged, whatever the states are.
"""

from dataclasses import dataclass, field

import numpy as np

SURELY = 5.0  # standard deviations of the sums, beyond which it is no chance
MUCH = 1.1  # a tenth beyond what can be: less does little harm


@dataclass
class Propensities:
    """The sums over all steps, which may be added in parts."""

    actions: int
    inverse: np.ndarray = field(init=False)  # of each action: the sum of 1 / p
    variance: np.ndarray = field(init=False)  # and the variance of that sum
    could: np.ndarray = field(init=False)  # the number of steps in which it could be chosen
    likely: int = 0  # steps whose action had more than one half
    others: int = 0
    expected: float = 0.0  # how many of the others there must be
    expected_variance: float = 0.0

    def __post_init__(self) -> None:
        self.inverse, self.variance, self.could = np.zeros((3, self.actions))

    def add(
        self, action: np.ndarray, probability: np.ndarray, allowed: np.ndarray | None = None
    ) -> "Propensities":
        """Add steps: their actions and probabilities, (n,), and perhaps their masks, (n, actions)."""
        p = probability.astype(np.float64)
        self.inverse += np.bincount(action, 1 / p, self.actions)
        self.variance += np.bincount(action, (1 - p) / p**2, self.actions)
        self.could += len(p) if allowed is None else allowed.sum(axis=0)
        likely = p[p > 0.5]
        self.likely += len(likely)
        self.others += len(p) - len(likely)
        self.expected += float(((1 - likely) / likely).sum())
        self.expected_variance += float(((1 - likely) / likely**2).sum())
        return self

    def doubts(self, names: tuple = ()) -> list[str]:
        """What cannot be right, in one line each with figures."""
        deviation = SURELY * np.sqrt(self.variance)
        wrong = np.flatnonzero((self.inverse > MUCH * self.could) & (self.inverse - deviation > self.could))
        too_few = self.expected - SURELY * self.expected_variance**0.5
        said = []
        if len(wrong):
            worst = int(wrong[np.argmax(self.inverse[wrong] / np.maximum(self.could[wrong], 1))])
            said.append(
                "the logged probabilities cannot be right: their inverses sum to "
                f"{self.inverse[worst]:,.0f} for "
                f"action {names[worst] if names else worst}, which could be chosen in "
                f"{self.could[worst]:,.0f} steps "
                f"({len(wrong)} of {self.actions} actions are like this); they are too small, or those of "
                "other "
                "actions"
            )
        if self.others * MUCH < too_few:
            said.append(
                f"the logged probabilities cannot be right: {self.likely:,} steps have one above 0.5, so "
                "that other "
                f"actions must have been taken in about {self.expected:,.0f} steps, and only "
                f"{self.others:,} have "
                "a smaller one; they are too large"
            )
        return said
