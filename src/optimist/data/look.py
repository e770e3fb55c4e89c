"""A look at a log before training: facts about it, and the card that has them as figures."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optimist.data.disk.appending import ACTION_COLUMNS, FEATURES
from optimist.data.rules.joining import LeftOut
from optimist.data.sampling import Sampler
from optimist.data.timeline import decoded_stacks
from optimist.data.transition import Spec
from optimist.data.views import View
from optimist.errors import in_one_line

SAMPLE, SAMPLE_BYTES, FEWEST = 6000, 2**24, 500  # observations to read: as many as their bytes allow
# Standardised features end at +- this: one that is 1 in 9 of 20,000 rows and else 0 would be 47, and DQN
# overrates such states (results/reward-scale). In no log are more than 1% of the rows farther away.
FARTHEST = 10.0
FEWEST_WINDOW_EPISODES = 20  # a mean over fewer says little about their policy
# Of `predictability`, which measures how narrow a log is.
FEWEST_STEPS, FEWEST_EPISODES = 200, 5  # with fewer there is no honest held-out figure
HELD_OUT = 5  # every fifth episode
RAW, RANDOM = 256, 256  # the most features as they are, and random ones of them
PROJECTED = 4096  # the most inputs of a random feature
MOST_CLASSES = 64  # the most frequent actions; any other counts as not predicted
PENALTIES = (1e-3, 1e-1)  # of the ridge, per row
MUCH, RUNS = 2**27, 32  # a file is hashed when it is opened: of more bytes of frames, a few runs are read


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
    before it. `alike` are those with different values that standardising makes equal."""

    mean: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray
    constant: np.ndarray
    repeats: dict[int, int]
    alike: list[int]


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

    def __init__(self, dataset: View):
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
        return str(self.spec.named(action))

    def action_column(self, number: int) -> str:
        """The name of a number of an action vector, or which it is."""
        return str((action_columns(self.dataset) or range(number + 1))[number])

    def feature(self, number: int) -> str:
        """The name of a feature in the table that it comes from, or its number."""
        return str((feature_names(self.dataset) or range(number + 1))[number])

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
        dataset, timeline, stack = self.dataset, self.dataset.timeline, self.spec.stack
        largest, steps = SAMPLE_BYTES // (self.spec.frame_bytes * stack), len(self.dataset)
        count, random = int(np.clip(largest, FEWEST, SAMPLE)), np.random.default_rng(0)
        if steps <= count:
            positions = np.arange(steps)
        elif timeline.source.frame_bytes <= MUCH:
            positions = np.sort(random.choice(steps, count, replace=False))
        else:
            begins = random.integers(0, steps - count // RUNS, RUNS)
            positions = np.unique(begins[:, None] + np.arange(count // RUNS))
        rows = Sampler(dataset).rows(positions)
        seen = decoded_stacks(timeline.frames, rows.frame, rows.age, stack)
        return Sample(seen, rows.action, timeline.episode_of(dataset.steps_at(positions)))

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
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        alike = []
        for number, values in enumerate(rows.T):
            far = values[np.abs(values - mean[number]) > FARTHEST * spread[number]]
            sides = (far[far > mean[number]], far[far < mean[number]])
            if any(len(np.unique(side)) > 1 for side in sides):
                alike.append(number)
        return Features(mean, spread, low, high, constant, repeats, alike)


def feature_names(dataset: View) -> list[str]:
    """The names of the features in the table that they come from, in the order in which an agent reads them;
    empty if they are not known."""
    return _columns(dataset, FEATURES, dataset.spec.frame_shape)


def action_columns(dataset: View) -> list[str]:
    """The same of the numbers of an action vector."""
    return _columns(dataset, ACTION_COLUMNS, dataset.spec.action_shape)


def _columns(dataset: View, kind: str, shape: tuple[int, ...]) -> list[str]:
    names = dataset.provenance.get(kind)
    if not isinstance(names, list) or shape != (len(names),):
        return []
    return [in_one_line(name) for name in names]


def predictability(
    observations: np.ndarray, actions: np.ndarray, episodes: np.ndarray, spec: Spec
) -> float | None:
    """The share of held-out actions that a ridge classifier predicts, or for action vectors the share of
    their variance that a ridge regression explains. The regressors are the observation and random ReLU
    features of it. Whole episodes are held out. None if there is too little to tell."""
    _, number = np.unique(episodes, return_inverse=True)
    if len(number) < FEWEST_STEPS or number.max() + 1 < FEWEST_EPISODES:
        return None
    held = np.random.default_rng(0).permutation(number.max() + 1)[number] % HELD_OUT == 0
    inputs = _features(observations.reshape(len(observations), -1), ~held)
    if not spec.discrete:  # the mean over the dimensions that vary, each at least 0
        error_of_mean = ((actions[held] - actions[~held].mean(axis=0)) ** 2).mean(axis=0)
        varies = error_of_mean > 0
        if not varies.any():
            return None
        errors = [((fit - actions[held]) ** 2).mean(axis=0) for fit in _fitted(inputs, actions, held)]
        shares = [1 - error[varies] / error_of_mean[varies] for error in errors]
        return max(float(np.clip(share, 0, 1).mean()) for share in shares)
    kinds, counts = np.unique(actions[~held], return_counts=True)
    frequent = kinds[np.argsort(-counts, kind="stable")[:MOST_CLASSES]]
    targets = (actions[:, None] == frequent).astype(np.float32)
    guesses = [frequent[each.argmax(axis=1)] for each in _fitted(inputs, targets, held)]
    return max(float((guess == actions[held]).mean()) for guess in guesses)


def _features(rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Standardised observations and random ReLU features of them, (n, d), with a column of ones."""
    random = np.random.default_rng(0)
    varying = np.flatnonzero((rows[kept] != rows[kept][0]).any(axis=0))
    if len(varying) > PROJECTED:
        varying = np.sort(random.choice(varying, PROJECTED, replace=False))
    chosen = rows[:, varying].astype(np.float32)
    spread = chosen[kept].std(axis=0)
    scaled = np.clip((chosen - chosen[kept].mean(axis=0)) / np.where(spread > 0, spread, 1), -10, 10)
    width = min(RANDOM, len(rows) // 8)
    weights = random.normal(size=(len(varying), width)).astype(np.float32) / max(1, len(varying)) ** 0.5
    hidden = np.maximum(scaled @ weights + random.uniform(-1, 1, width).astype(np.float32), 0)
    shown = random.permutation(len(varying))[:RAW]
    return np.concatenate([np.ones((len(rows), 1), np.float32), scaled[:, shown], hidden], axis=1)


def _fitted(inputs: np.ndarray, targets: np.ndarray, held: np.ndarray) -> list[np.ndarray]:
    """The held-out predictions of a ridge regression for each penalty."""
    rows = inputs[~held]
    gram, moment = rows.T @ rows, rows.T @ targets[~held]
    gram, ridge = gram.astype(np.float64), len(rows) * np.eye(len(gram))
    return [inputs[held] @ np.linalg.solve(gram + penalty * ridge, moment) for penalty in PENALTIES]


def card(dataset: View) -> dict[str, Any]:
    """Counts, returns, actions, sizes and origin of a dataset or a view. Returns are those of complete
    episodes, undiscounted and unclipped; they are None if no episode is complete. Sizes are those of the
    whole timeline; the raw size counts one byte per flag."""
    episodes, timeline, spec = dataset.episodes, dataset.timeline, dataset.spec
    left_out, names = LeftOut.said(dataset.provenance), feature_names(dataset)
    steps, lengths, kept = dataset.steps(), episodes.lengths, timeline.source.frame_bytes
    optional = {}
    if timeline.probability is not None:
        optional["probabilities"] = _range(timeline.probability[steps])
    if timeline.allowed is not None:
        optional["allowed_actions"] = _range(np.bitwise_count(timeline.allowed.bits[steps]).sum(axis=1))
    return {
        "steps": len(dataset),
        "episodes": len(episodes),
        "complete_episodes": int(episodes.complete.sum()),
        "left_out": f"{left_out}; lengths and returns lack them" if left_out.steps else None,
        "spec": spec.in_words(),
        **({"features": names} if names else {}),
        **_return_figures(dataset, timeline.time[steps]),
        "episode_length": {
            "mean": float(lengths.mean()),
            "median": float(np.median(lengths)),
            "longest": float(lengths.max()),
            "shortest": float(lengths.min()),
        },
        "terminal_rate": float(episodes.terminal.mean()),
        "truncated_rate": float(episodes.truncated.mean()),
        **_action_figures(Look(dataset)),
        **optional,
        "bytes_on_disk": kept + timeline.source.step_bytes if dataset.path else 0,
        "bytes_per_frame_raw": spec.frame_bytes,
        "bytes_per_frame_stored": kept / timeline.frame_count,
        "provenance": dataset.provenance,
        "fingerprint": dataset.fingerprint,
    }


def _return_figures(dataset: View, time: np.ndarray) -> dict[str, Any]:
    """Figures of the returns of complete episodes; `time` is that of each step."""
    episodes = dataset.episodes
    returns, ended = episodes.returns[episodes.complete], episodes.time[episodes.complete]
    tenth = np.searchsorted(np.quantile(time, np.linspace(0, 1, 11)[1:-1]), ended)
    groups = [returns[tenth == number] for number in range(10)]
    some, in_order = len(returns) > 0, returns[np.argsort(ended)]
    policy = some and follows_time(dataset.provenance)
    return {
        "return_mean": float(in_order.mean()) if some else None,
        "return_mean_interval": mean_interval(in_order) if some else None,
        "return_median": float(np.median(returns)) if some else None,
        "return_best": float(returns.max()) if some else None,
        "return_worst": float(returns.min()) if some else None,
        "return_best_tenth": float(np.sort(returns)[-max(1, len(returns) // 10) :].mean()) if some else None,
        "best_policy_return": best_policy_return(in_order) if policy else None,
        "return_per_tenth": [float(group.mean()) if len(group) else None for group in groups],
    }


def mean_interval(returns: np.ndarray) -> list[float] | None:
    """The 95% interval of the mean over episodes, by their standard error; none if they are too few."""
    if len(returns) < FEWEST_WINDOW_EPISODES:
        return None
    error = 1.96 * returns.std(ddof=1) / math.sqrt(len(returns))
    return [float(returns.mean() - error), float(returns.mean() + error)]


def follows_time(provenance: Mapping[str, Any]) -> bool:
    """Is it a log of play, in the order in which it was played? A table may be grouped by customer."""
    return bool(provenance.get("environment")) or "recorded" in provenance


def best_policy_return(returns: np.ndarray) -> float:
    """The best mean return over a window of a twentieth of the episodes, which are sorted by time: an
    estimate of the score of the best policy in the recording."""
    window = min(len(returns), max(FEWEST_WINDOW_EPISODES, len(returns) // 20))
    total = np.concatenate([[0.0], np.cumsum(returns)])
    return float((total[window:] - total[:-window]).max() / window)


def _action_figures(look: Look) -> dict[str, Any]:
    if look.spec.discrete:
        return {
            **({"action_names": list(look.spec.action_names)} if look.spec.action_names else {}),
            "action_frequency": (look.action_counts / len(look.action)).tolist(),
            "action_entropy": look.action_entropy,
        }
    names = action_columns(look.dataset)
    return {
        **({"action_columns": names} if names else {}),
        "action_low": list(look.spec.action_low),
        "action_high": list(look.spec.action_high),
        "action_mean": look.action.mean(axis=0).tolist(),
        "action_std": look.action.std(axis=0).tolist(),
    }


def _range(values: np.ndarray) -> dict[str, Any]:
    return {"mean": float(values.mean()), "least": float(values.min()), "most": float(values.max())}
