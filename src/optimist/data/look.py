"""A look at a log before training: facts about it, and warnings of one line each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.predictability import predictability
from optimist.data.stacking import decoded_stacks
from optimist.errors import DataError, some_of

SAMPLE, SAMPLE_BYTES, FEWEST = 6000, 2**24, 500  # observations to read: as many as their bytes allow
MUCH, RUNS = 2**27, 32  # a file is hashed when it is opened: of more bytes of frames, a few runs are read
NARROW = 0.9  # share of the actions that is predicted
DOMINANT = 0.95  # share of one action, beside which others are hardly tried
RARE_EPISODES, RARE_STEPS = 0.05, 1e-4  # shares with an unusual reward, below which rewards are sparse
UNEQUAL = 1e3  # ratio of the largest spread of a feature to the smallest
FAR = 1e3  # ratio of a feature's mean to its spread
TIME_LIMIT = 20  # steps; shorter episodes of equal length are usual
PILED_UP = 0.1  # share of the episodes with the greatest length
FEW = 10  # episodes; fewer say nothing about all
THIN = 0.01  # share of the steps
SHOWN = 6  # names in a list


class Rewards(NamedTuple):
    """The rewards of all steps; `usual` is the most frequent one."""

    low: float
    high: float
    usual: float
    unusual_steps: int
    unusual_episodes: int


@dataclass(frozen=True, eq=False)
class Features:
    """The features of vector observations in a sample, (d,) each; `repeats` maps a feature to an equal one
    before it."""

    mean: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray
    constant: np.ndarray
    repeats: dict[int, int]


class BestTenth(NamedTuple):
    """The tenth of the complete episodes with the highest returns."""

    episodes: int
    steps: int
    mean_return: float


class Sample(NamedTuple):
    """Some steps: their observations, actions, and the numbers of their episodes."""

    observations: np.ndarray
    actions: np.ndarray
    episodes: np.ndarray


class Look:
    """Facts about a dataset or a view. Rewards, actions and ends are those of all steps; observations are
    those of a sample, so that a look at a million steps takes less than a second."""

    def __init__(self, dataset: Dataset):
        self.dataset, self.spec, self.episodes = dataset, dataset.spec, dataset.episodes

    @cached_property
    def reward(self) -> np.ndarray:
        return self._column(self.dataset.timeline.reward)

    @cached_property
    def action(self) -> np.ndarray:
        return self._column(self.dataset.timeline.action)

    def _column(self, column: np.ndarray) -> np.ndarray:
        whole = len(self.dataset) == len(self.dataset.timeline)
        return column if whole else column[self.dataset.steps()]

    @cached_property
    def rewards(self) -> Rewards:
        values, counts = np.unique(self.reward, return_counts=True)
        usual = values[counts.argmax()]
        differs = np.concatenate([[0], np.cumsum(self.reward != usual)])
        per_episode = np.diff(differs[self.dataset.offsets])
        low, high = float(values[0]), float(values[-1])
        return Rewards(low, high, float(usual), int(differs[-1]), int((per_episode > 0).sum()))

    @cached_property
    def action_counts(self) -> np.ndarray:
        """How often each discrete action was taken."""
        return np.bincount(self.action, minlength=self.spec.actions)

    @cached_property
    def action_entropy(self) -> float:
        """In nats; ln(actions) means uniformly random."""
        share = self.action_counts[self.action_counts > 0] / len(self.action)
        return float(-(share * np.log(share)).sum() + 0.0)

    @property
    def most_common(self) -> float:
        """The share of the most common action."""
        return float(self.action_counts.max() / len(self.action))

    def name_of(self, action: int) -> str:
        """The user's own name of an action, or its number."""
        names = getattr(self.spec, "action_names", ())
        return str(names[action] if names else action)

    @cached_property
    def predicted(self) -> float | None:
        return predictability(*self.sample, self.spec)

    @cached_property
    def best_tenth(self) -> BestTenth | None:
        episodes = self.episodes
        complete = np.flatnonzero(episodes.complete)
        if not len(complete):
            return None
        count = max(1, len(complete) // 10)
        best = complete[np.argsort(-episodes.returns[complete], kind="stable")[:count]]
        return BestTenth(count, int(episodes.lengths[best].sum()), float(episodes.returns[best].mean()))

    @cached_property
    def sample(self) -> Sample:
        dataset, timeline = self.dataset, self.dataset.timeline
        positions = self._positions()
        ranges = dataset.ranges_at(positions)
        steps = dataset.starts[ranges] + positions - dataset.offsets[ranges]
        episode = timeline.episode_of(steps)
        age = np.minimum(steps - timeline.episode_starts[episode], self.spec.stack - 1)
        seen = decoded_stacks(timeline.frames, steps + episode, age, self.spec.stack)
        return Sample(seen, timeline.action[steps], episode)

    def _positions(self) -> np.ndarray:
        """Positions in the view to read, in order."""
        each = prod(self.spec.observation_shape) * np.dtype(self.spec.frame_dtype).itemsize
        count, steps = int(np.clip(SAMPLE_BYTES // each, FEWEST, SAMPLE)), len(self.dataset)
        if steps <= count:
            return np.arange(steps)
        random = np.random.default_rng(0)
        if self.dataset.timeline.source.frame_bytes <= MUCH:
            return np.sort(random.choice(steps, count, replace=False))
        begins = random.integers(0, steps - count // RUNS, RUNS)
        return np.unique(begins[:, None] + np.arange(count // RUNS))

    @cached_property
    def features(self) -> Features | None:
        """None for images."""
        if len(self.spec.frame_shape) > 1:
            return None
        rows = self.sample.observations[:, -self.spec.frame_shape[0] :].astype(np.float64)
        low, high = rows.min(axis=0), rows.max(axis=0)
        constant = low == high
        first: dict[bytes, int] = {}
        repeats = {}
        for number in np.flatnonzero(~constant).tolist():
            before = first.setdefault(rows[:, number].tobytes(), number)
            if before != number:
                repeats[number] = before
        return Features(rows.mean(axis=0), rows.std(axis=0), low, high, constant, repeats)


def warnings(dataset: Dataset) -> list[str]:
    """What to know before training on this log, one line each; none if nothing is remarkable. If frames are
    damaged, a line says so."""
    return warnings_of(Look(dataset))


def warnings_of(look: Look) -> list[str]:
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


def _about_observations(look: Look) -> Iterator[str]:
    seen, features = look.sample.observations, look.features
    if seen.dtype.kind == "f" and not np.isfinite(seen).all():
        yield "some observations hold NaN or infinity: remove those rows, or fill them"
        return
    if features is None:
        yield from _about_images(seen)
    elif features.constant.all():
        yield "the observation is always the same: an agent can only learn which action is best on average"
    elif not _is_flags(features):
        own = "collection" in look.dataset.provenance  # by default these are not standardised
        yield from _about_features(features, "--observations standard" if own else "train does so by default")


def _is_flags(features: Features) -> bool:
    """Are all features 0 or 1, as a coded category is? Some of its values may be rare."""
    return bool(np.isin(features.low, (0, 1)).all() and np.isin(features.high, (0, 1)).all())


def _about_images(seen: np.ndarray) -> Iterator[str]:
    if len(seen) > 1 and (seen == seen[0]).all():
        yield "every image is the same: check the observations"
    elif seen.dtype == np.uint8 and seen.max() <= 1:
        yield "the images are uint8 but hold only 0 and 1, nearly black: store them as bool, or as 0 to 255"


def _about_features(features: Features, remedy: str) -> Iterator[str]:
    constant = np.flatnonzero(features.constant).tolist()
    if constant:
        verb = "changes" if len(constant) == 1 else "change"
        yield f"{_listed('feature', constant)} never {verb}: leave out what tells nothing"
    if features.repeats:
        pairs = [f"{late} = {early}" for late, early in features.repeats.items()]
        yield f"features repeat others: {some_of(pairs, SHOWN)}; leave one of each out"
    vary = np.flatnonzero(~features.constant)
    spread = features.spread[vary]
    small, large = vary[spread.argmin()], vary[spread.argmax()]
    if features.spread[large] > UNEQUAL * features.spread[small]:
        yield (
            f"features have unequal scales: feature {large} spreads by {features.spread[large]:.3g}, feature "
            f"{small} by {features.spread[small]:.3g}; standardise them: {remedy}"
        )
    far = [number for number in vary.tolist() if abs(features.mean[number]) > FAR * features.spread[number]]
    if far:
        yield (
            f"{_listed('feature', far)} varies little compared with its size ({features.mean[far[0]]:.4g} ± "
            f"{features.spread[far[0]]:.2g}); standardise the features: {remedy}"
        )


def _about_actions(look: Look) -> Iterator[str]:
    if not look.spec.discrete:
        actions = look.sample.actions
        constant = np.flatnonzero((actions == actions[0]).all(axis=0)).tolist()
        if constant:
            yield f"{_listed('action dimension', constant)} never changes: what it does cannot be learned"
    else:
        never = np.flatnonzero(look.action_counts == 0).tolist()
        if never:
            names, verb = map(look.name_of, never), "is" if len(never) == 1 else "are"
            yield (
                f"{_listed('action', names)} {verb} never taken: "
                "such values are guesses; take a conservative agent (cql, discrete_bcq, discrete_iql)"
            )
        if look.most_common > DOMINANT and len(never) < look.spec.actions - 1:
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


OF_STEPS = (_about_rewards, _about_ends, _about_best)
OF_OBSERVATIONS = (_about_observations, _about_actions, _about_width)


def _listed(kind: str, names: Iterable[Any]) -> str:
    listed = list(map(str, names))
    return f"{kind}{'' if len(listed) == 1 else 's'} {some_of(listed, SHOWN)}"
