"""Weighted importance sampling, for logs that hold the probabilities of the logged actions."""

import numpy as np

from optimist.data.views import View
from optimist.training.selection.evidence import Rewards

FEWEST = 5  # with a smaller effective number of episodes there is no estimate


def weighted_return(view: View, chosen: np.ndarray, rewards: Rewards) -> float:
    """The discounted return of a greedy policy, whose actions in the steps of the view are `chosen`, (n,).

    Per-decision weighted importance sampling (Precup et al. 2000, section 4): after t steps an episode has
    the weight prod [a = pi(s)] / b(a | s), and the reward at t is the weighted mean over the episodes. NaN if
    the log has no probabilities, or if the policy agrees with hardly any episode.
    """
    probability = view.timeline.probability
    if probability is None or not view.spec.discrete:
        return float("nan")
    steps, lengths = view.steps(), np.diff(view.offsets)
    ratio = (view.timeline.action[steps] == chosen) / probability[steps]
    reward = rewards.clipped(view.timeline.reward[steps])
    weight, total = np.ones(len(lengths)), 0.0
    for t in range(int(lengths.max())):
        going = np.flatnonzero(lengths > t)
        at = view.offsets[:-1][going] + t
        weight[going] *= ratio[at]
        everyone = weight.sum()  # an episode that has ended counts with rewards of 0
        if everyone == 0:
            return float("nan")
        total += rewards.gamma**t * float(weight[going] @ reward[at]) / everyone
        weight /= everyone
    worth = 1 / float((weight**2).sum())  # the effective number of episodes (Kong 1992)
    return total if worth >= FEWEST else float("nan")
