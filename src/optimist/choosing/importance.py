"""Weighted importance sampling of softened policies, and the logged propensities that cannot be right.

A policy that always takes one action agrees with hardly any logged episode to its end. So the estimate is
about a softened policy, which acts as the log's own policy in a share of the steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optimist.choosing.evidence import Rewards
from optimist.data.views import View

SOFT = (0.1, 0.25, 0.5)  # shares of the log's own policy; the first that leaves enough episodes
ENOUGH, FEWEST = 30.0, 5.0  # effective numbers of episodes: to be content, and to give an estimate at all
DRAWS = 400  # of the bootstrap over episodes
FAR, SURE = 0.25, 5.0  # how far the propensities of an action may be off, and in how many standard errors


class Weighted(NamedTuple):
    """Estimates of softened policies: of the log in the first row, of bootstrapped logs in the others."""

    soft: float  # the share of the log's own policy
    values: np.ndarray  # (1 + DRAWS, C)
    gains: np.ndarray  # over the log's own policy, (1 + DRAWS, C)
    effective: np.ndarray  # number of episodes (Kong 1992), (C,)


def softened(
    view: View, actions: Sequence[np.ndarray], propensities: np.ndarray, rewards: Rewards
) -> Weighted:
    """The estimates of policies whose actions in the steps of the view are `actions`, (n,) each, if the log
    took its own with the `propensities`, (n,)."""
    episodes = len(view.starts)
    drawn = np.random.default_rng(0).multinomial(episodes, np.full(episodes, 1 / episodes), DRAWS)
    times, logged = np.concatenate([np.ones((1, episodes)), drawn]), view.timeline.action[view.steps()]
    agrees = np.stack([logged == each for each in actions], axis=1) / propensities[:, None]
    for soft in SOFT:
        ratios = np.column_stack([np.ones(len(logged)), (1 - soft) * agrees + soft])
        values, (_, *effective) = weighted_returns(view, ratios, rewards, times)
        if np.median(effective) >= ENOUGH:
            break
    found = np.where(np.array(effective) >= FEWEST, values[:, 1:], np.nan)
    return Weighted(soft, found, found - values[:, :1], np.array(effective))


def weighted_returns(
    view: View, ratios: np.ndarray, rewards: Rewards, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The discounted returns of policies, (draws, C), of which each counts a logged step `ratios` times,
    (n, C), for each row of `times`: how often each episode is in the log, (draws, episodes). And the
    effective number of episodes, (C,).

    Per-decision weighted importance sampling (Precup et al. 2000, section 4): after t steps an episode has
    the weight prod ratio, and the reward at t is the weighted mean over the episodes. An episode that has
    ended counts with rewards of 0; one that was cut off does not count from there on."""
    lengths, terminal = np.diff(view.offsets), view.timeline.terminal[view.stops - 1]
    reward = rewards.clipped(view.timeline.reward[view.steps()])[:, None]
    weight = np.ones((len(lengths), ratios.shape[1]))
    total, ended = (np.zeros((len(times), ratios.shape[1])) for _ in range(2))
    for t in range(int(lengths.max())):
        going = np.flatnonzero(lengths > t)
        at = view.offsets[:-1][going] + t
        weight[going] *= ratios[at]
        everyone = np.maximum(times[:, going] @ weight[going] + ended, 1e-300)
        total += rewards.gamma**t * (times[:, going] @ (weight[going] * reward[at])) / everyone
        over = going[(lengths[going] == t + 1) & terminal[going]]
        ended += times[:, over] @ weight[over]
        scale = np.maximum(weight.max(axis=0), 1e-300)
        weight, ended = weight / scale, ended / scale
    return total, weight.sum(axis=0) ** 2 / np.maximum((weight**2).sum(axis=0), 1e-300)


def doubtful_propensities(view: View) -> str | None:
    """A note about the action whose logged propensities are farthest off. The sum of 1 / b(a | s) over the
    steps with an action is, but for chance, the number of steps in which the behaviour could take it."""
    propensities, masks = view.timeline.probability, view.timeline.allowed
    if propensities is None or not view.spec.discrete:
        return None
    steps, count = view.steps(), view.spec.actions
    p, action = propensities[steps].astype(float), view.timeline.action[steps]
    sums = np.bincount(action, 1 / p, count)
    error = np.sqrt(np.bincount(action, (1 - p) / p**2, count))
    possible = np.full(count, len(p)) if masks is None else masks[steps].sum(axis=0)
    high = sums - possible - SURE * error > FAR * possible
    low = possible - sums - SURE * error > FAR * possible
    low &= (sums > 0) & (p < 1).all()  # a sure choice rules the other actions out there
    if not (high | low).any():
        return None
    worst = int(np.argmax(np.where(high | low, np.abs(np.log(np.maximum(sums, 1e-300) / possible)), -1)))
    return (
        f"the logged probabilities can hardly be right: 1 / probability sums to {sums[worst]:,.0f} over the "
        f"steps with action {view.spec.named(worst)}, which was possible in {possible[worst]:,}"
    )
