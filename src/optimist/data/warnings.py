"""What to know about a log before training on it, as warnings of one line each."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from optimist.data.disk.appending import DOUBTS
from optimist.data.look import FARTHEST, Features, Look
from optimist.data.rules.checks import Propensities
from optimist.data.views import View
from optimist.errors import DataError, in_one_line, some_of

NARROW = 0.9  # share of the actions that is predicted
DOMINANT = 0.95  # share of one action, beside which others are hardly tried
RARE_EPISODES, RARE_STEPS = 0.05, 1e-4  # shares with an unusual reward, below which rewards are sparse
UNEQUAL = 1e3  # ratio of the largest spread of a feature to the smallest
FAR = 1e3  # ratio of a feature's mean to its spread
DARK = 25  # the largest byte of images of which nearly nothing is left when they are divided by 255
LARGE_PIXEL = 10  # floats are read as they are; bytes are divided by 255
TIME_LIMIT = 20  # steps; shorter episodes of equal length are usual
PILED_UP = 0.1  # share of the episodes with the greatest length
FEW = 10  # episodes; fewer say nothing about all
THIN = 0.01  # share of the steps
SHOWN = 6  # names in a list


def warnings(dataset: View, look: Look | None = None) -> list[str]:
    """None if nothing is remarkable. If frames are damaged, a line says so."""
    look = look or Look(dataset)
    lines = [line for about in OF_STEPS for line in about(look)]
    try:
        return lines + [line for about in OF_OBSERVATIONS for line in about(look)]
    except DataError as damage:
        return [*lines, str(damage)]


def _about_rewards(look: Look) -> Iterator[str]:
    rewards, steps, episodes = look.rewards, len(look.reward), look.episodes
    if rewards.low == rewards.high == 0:
        yield "every reward is 0: there is nothing to learn but cloning; check the rewards"
    elif rewards.low == rewards.high:
        complete = episodes.lengths[episodes.complete]
        if not episodes.terminal.any() or (len(complete) > 1 and complete.min() == complete.max()):
            yield (
                f"every reward is {rewards.usual:g}, and no episode ends earlier than another: all "
                "behaviour looks equally good; check the rewards and the terminals"
            )
    elif (
        rewards.unusual_episodes < RARE_EPISODES * len(episodes) or rewards.unusual_steps < RARE_STEPS * steps
    ):
        yield (
            f"sparse rewards: {rewards.unusual_steps:,} of {steps:,} steps, in {rewards.unusual_episodes:,} "
            f"of {len(episodes):,} episodes, have another reward than {rewards.usual:g}; n-step returns "
            "learn faster from them: --n-step 5"
        )


def _about_ends(look: Look) -> Iterator[str]:
    episodes = look.episodes
    lengths, whole = episodes.lengths, episodes.complete
    if len(episodes) == 1 and not episodes.terminal.any() and not episodes.truncated.any():
        yield f"the log is one episode of {lengths[0]:,} steps without an end: check the ends of episodes"
    elif not episodes.terminal.any() and len(np.unique(lengths[whole])) > 1:
        yield (
            f"no episode ends with a terminal step, and their lengths differ ({lengths[whole].min():,} to "
            f"{lengths[whole].max():,} steps): what they lead to counts as going on; if they really end "
            "there, mark those steps as terminals"
        )
    if "collection" in look.dataset.provenance or "recorded" in look.dataset.provenance:
        return  # the environment itself told time limits from ends
    longest = whole & (lengths == lengths.max())
    many = longest.sum() >= max(FEW, PILED_UP * whole.sum())
    if many and lengths.max() >= TIME_LIMIT and episodes.terminal[longest].all():
        yield (
            f"{longest.sum():,} of {whole.sum():,} episodes have exactly {lengths.max():,} steps and end "
            "with a terminal step: if a time limit ended them, mark those steps as truncations instead"
        )


def _about_masks(look: Look) -> Iterator[str]:
    timeline, last = look.dataset.timeline, look.dataset.stops - 1
    if timeline.allowed is None:
        return
    unknown = ~timeline.terminal[last] & ~timeline.allowed_after(last).any(axis=1)
    if cut := int(unknown.sum()):
        yield (
            f"{cut:,} of {len(look.episodes):,} episodes are truncated, and what could be chosen after them "
            "is not known: the allowed actions of their last steps stand for it; give next_allowed_actions, "
            "or mark those that really end as terminals"
        )


def _about_observations(look: Look) -> Iterator[str]:
    seen, features = look.sample.observations, look.features
    if seen.dtype.kind == "f" and not np.isfinite(seen).all():
        yield "some observations hold NaN or infinity: fill them, or end the episodes before them"
        return
    if features is None:
        yield from _about_images(seen)
    elif features.constant.all():
        yield "the observation is always the same: an agent can only learn which action is best on average"
    elif not (np.isin(features.low, (0, 1)).all() and np.isin(features.high, (0, 1)).all()):
        # Not only flags, as a coded category has, of which some values may be rare.
        own = "collection" in look.dataset.provenance  # by default these are not standardised
        remedy = "standardise them: --observations standard" if own else "train standardises them"
        yield from _about_features(features, look.feature, remedy)
        if features.alike and not own:
            whose = _listed("feature", map(look.feature, features.alike))
            yield (
                f"{whose}: there are values more than {FARTHEST:g} deviations from the mean, and train reads "
                f"them all as {FARTHEST:g}; if they need different actions, log the logarithm"
            )


def _about_images(seen: np.ndarray) -> Iterator[str]:
    if len(seen) > 1 and (seen == seen[0]).all():
        yield "every image is the same: check the observations"
    elif seen.dtype == np.uint8 and seen.max() <= 1:
        yield "the images are uint8 but hold only 0 and 1, nearly black: store them as bool, or as 0 to 255"
    elif seen.dtype == np.uint8 and seen.max() <= DARK:
        yield (
            f"the images are uint8 but hold only 0 to {seen.max()}, and networks divide them by 255: "
            "nearly black; give each kind of thing a channel of bool, or spread the values over 0 to 255"
        )
    elif seen.dtype.kind == "f" and np.abs(seen).max() > LARGE_PIXEL:
        yield (
            f"the images are floats of up to {np.abs(seen).max():.4g}, too large for networks: store them as "
            "uint8, 0 to 255, which are scaled, or divide them by their maximum"
        )


def _about_features(features: Features, name: Callable[[int], str], remedy: str) -> Iterator[str]:
    constant = np.flatnonzero(features.constant).tolist()
    if constant:
        verb = "changes" if len(constant) == 1 else "change"
        yield f"{_listed('feature', map(name, constant))} never {verb}: leave out what tells nothing"
    if features.repeats:
        pairs = [f"{name(late)} = {name(early)}" for late, early in features.repeats.items()]
        yield f"features repeat others: {some_of(pairs, SHOWN)}; leave one of each out"
    vary = np.flatnonzero(~features.constant)
    spread = features.spread[vary]
    small, large = int(vary[spread.argmin()]), int(vary[spread.argmax()])
    if features.spread[large] > UNEQUAL * features.spread[small]:
        yield (
            f"features have unequal scales: feature {name(large)} spreads by {features.spread[large]:.3g}, "
            f"feature {name(small)} by {features.spread[small]:.3g}; {remedy}"
        )
    far = [number for number in vary.tolist() if abs(features.mean[number]) > FAR * features.spread[number]]
    if far:
        yield (
            f"{_listed('feature', map(name, far))} varies little compared with its size ("
            f"{features.mean[far[0]]:.4g} ± {features.spread[far[0]]:.2g}), and float32 holds it in steps "
            f"of {np.spacing(np.float32(abs(features.mean[far[0]]))):.2g}: subtract a constant before it is "
            f"logged; {remedy}, but what is rounded off is lost"
        )


def _about_actions(look: Look) -> Iterator[str]:
    if not look.spec.discrete:
        actions = look.sample.actions
        constant = np.flatnonzero((actions == actions[0]).all(axis=0)).tolist()
        if constant:
            which = _listed("action dimension", map(look.action_column, constant))
            yield f"{which} never changes: what it does cannot be learned"
        if actions.shape[1] > 1 and np.isin(actions, (0, 1)).all() and (actions.sum(axis=1) == 1).all():
            yield (
                "every action vector holds one 1 and else 0, as a coded choice does: give the numbers of the "
                "chosen actions instead (argmax), and agents for discrete actions learn from them"
            )
    elif look.most_common == 1:
        yield (
            f"action {look.name_of(int(look.action_counts.argmax()))} is taken in every step: there is "
            "nothing to compare it with, and no agent can learn when to take another"
        )
    else:
        never = np.flatnonzero(look.action_counts == 0).tolist()
        if never:
            names, verb = map(look.name_of, never), "is" if len(never) == 1 else "are"
            from_one = never == [0] and not look.spec.action_names and look.spec.actions > 2
            yield (
                f"{_listed('action', names)} {verb} never taken: "
                + "if your actions count from 1, subtract 1, or a policy may answer 0; else " * from_one
                + "such values are guesses; take a conservative agent (cql, discrete_bcq, discrete_iql)"
            )
        if look.most_common > DOMINANT:
            yield (
                f"action {look.name_of(int(look.action_counts.argmax()))} is taken in "
                f"{look.most_common:.1%} of the steps: there is little to compare it with"
            )


def _about_width(look: Look) -> Iterator[str]:
    predicted = look.predicted
    if predicted is None or predicted < NARROW:
        return
    if not look.spec.discrete:
        yield (
            f"{predicted:.0%} of the actions' variance is predicted from the observation: a narrow log; take "
            "a conservative agent (bcq) or cloning (cloned_actor)"
        )
    elif look.most_common <= DOMINANT and 1 - predicted <= (1 - look.most_common) / 2:
        yield (
            f"{predicted:.0%} of the actions are predicted from the observation ({look.most_common:.0%} by "
            "the most common action alone): a narrow log; take a conservative agent (cql, discrete_bcq, "
            "discrete_iql) or cloning (behaviour_cloning)"
        )


def _about_order(look: Look) -> Iterator[str]:
    """What columns that were left out say, which the import saw."""
    doubts = look.dataset.provenance.get(DOUBTS)
    if isinstance(doubts, list):
        yield from (in_one_line(each, 400) for each in doubts)


def _about_probabilities(look: Look) -> Iterator[str]:
    timeline, steps = look.dataset.timeline, look.dataset.steps()
    if timeline.probability is not None and look.spec.discrete:
        allowed = None if timeline.allowed is None else timeline.allowed[steps]
        sums = Propensities(look.spec.actions).add(look.action, timeline.probability[steps], allowed)
        yield from sums.doubts(look.spec.action_names)


def _about_best(look: Look) -> Iterator[str]:
    best, episodes = look.best_tenth, look.episodes
    if best is None:
        yield "no episode is complete: returns are unknown, and --best cannot choose"
        return
    returns = episodes.returns[episodes.complete]
    if len(returns) >= FEW and returns.min() == returns.max():
        if look.rewards.low != look.rewards.high:
            yield f"every complete episode has the same return, {returns[0]:g}: check rewards and ends"
    elif best.steps < THIN * len(look.reward) and len(returns) >= FEW:
        yield (
            f"the best tenth of the episodes ({best.episodes:,}, mean return {best.mean_return:.4g}) holds "
            f"only {best.steps:,} of {len(look.reward):,} steps: there is little good behaviour to learn from"
        )


OF_STEPS = (_about_order, _about_rewards, _about_ends, _about_masks, _about_probabilities, _about_best)
OF_OBSERVATIONS = (_about_observations, _about_actions, _about_width)


def _listed(kind: str, names: Iterable[Any]) -> str:
    listed = list(map(str, names))
    return f"{kind}{'' if len(listed) == 1 else 's'} {some_of(listed, SHOWN)}"
