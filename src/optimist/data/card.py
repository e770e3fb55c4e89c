"""Figures about a dataset: what to know before training on it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.look import action_columns, feature_names
from optimist.data.rules.joining import LeftOut

FEWEST_WINDOW_EPISODES = 20  # a mean over fewer says little about their policy


def card(dataset: Dataset) -> dict:
    """Counts, returns, actions, sizes and origin of a dataset or a view. Returns are those of complete
    episodes, undiscounted and unclipped; they are None if no episode is complete."""
    episodes = dataset.episodes
    returns, time = episodes.returns[episodes.complete], episodes.time[episodes.complete]
    left_out = LeftOut.said(dataset.provenance)
    return {
        "steps": len(dataset),
        "episodes": len(episodes),
        "complete_episodes": len(returns),
        "left_out": f"{left_out}; lengths and returns lack them" if left_out.steps else None,
        "spec": dataset.spec.in_words(),
        **({"features": names} if (names := feature_names(dataset)) else {}),
        **_return_figures(returns[np.argsort(time)], follows_time(dataset.provenance)),
        "return_per_tenth": _return_per_tenth(dataset, returns, time),
        "episode_length": _length_figures(episodes.lengths),
        "terminal_rate": float(episodes.terminal.mean()),
        "truncated_rate": float(episodes.truncated.mean()),
        **_action_figures(dataset),
        **_optional_figures(dataset),
        **_size_figures(dataset),
        "provenance": dataset.provenance,
        "fingerprint": dataset.fingerprint,
    }


def _return_figures(returns: np.ndarray, follows_time: bool) -> dict:
    """Figures of the returns of complete episodes, which are sorted by time."""
    names = (
        "return_mean",
        "return_mean_interval",
        "return_median",
        "return_best",
        "return_worst",
        "return_best_tenth",
        "best_policy_return",
    )
    if not len(returns):
        return dict.fromkeys(names)
    best_tenth = np.sort(returns)[-max(1, len(returns) // 10) :]
    figures = (returns.mean(), np.median(returns), returns.max(), returns.min(), best_tenth.mean())
    mean, *others = map(float, figures)
    best_policy = best_policy_return(returns) if follows_time else None
    return dict(zip(names, (mean, mean_interval(returns), *others, best_policy), strict=True))


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


def _return_per_tenth(dataset: Dataset, returns: np.ndarray, ended: np.ndarray) -> list[float | None]:
    """The mean return of the episodes that ended in each tenth of the view, by time."""
    time = dataset.timeline.time[dataset.steps()]
    tenth = np.searchsorted(np.quantile(time, np.linspace(0, 1, 11)[1:-1]), ended)
    groups = [returns[tenth == number] for number in range(10)]
    return [float(group.mean()) if len(group) else None for group in groups]


def _length_figures(lengths: np.ndarray) -> dict:
    figures = {"mean": lengths.mean(), "median": np.median(lengths), "longest": lengths.max()}
    return {name: float(value) for name, value in figures.items()} | {"shortest": float(lengths.min())}


def _action_figures(dataset: Dataset) -> dict:
    actions = dataset.timeline.action[dataset.steps()]
    if not dataset.spec.discrete:
        return {
            **({"action_columns": columns} if (columns := action_columns(dataset)) else {}),
            "action_low": list(dataset.spec.action_low),
            "action_high": list(dataset.spec.action_high),
            "action_mean": actions.mean(axis=0).tolist(),
            "action_std": actions.std(axis=0).tolist(),
        }
    frequency = np.bincount(actions, minlength=dataset.spec.actions) / len(actions)
    seen = frequency[frequency > 0]
    names = {"action_names": list(dataset.spec.action_names)} if dataset.spec.action_names else {}
    # In nats; ln(actions) means uniformly random. Adding 0.0 turns -0.0 into 0.0.
    return {
        **names,
        "action_frequency": frequency.tolist(),
        "action_entropy": float(-(seen * np.log(seen)).sum() + 0.0),
    }


def _optional_figures(dataset: Dataset) -> dict:
    """The probabilities of the logged actions and the numbers of allowed ones, if they were logged."""
    timeline, steps, found = dataset.timeline, dataset.steps(), {}
    if timeline.probability is not None:
        found["probabilities"] = _range(timeline.probability[steps])
    if timeline.allowed is not None:
        found["allowed_actions"] = _range(np.bitwise_count(timeline.allowed.bits[steps]).sum(axis=1))
    return found


def _range(values: np.ndarray) -> dict:
    return {"mean": float(values.mean()), "least": float(values.min()), "most": float(values.max())}


def _size_figures(dataset: Dataset) -> dict:
    """Sizes of the whole timeline, also for a view; the raw size counts one byte per flag."""
    timeline, spec = dataset.timeline, dataset.spec
    kept = timeline.source.frame_bytes
    return {
        "bytes_on_disk": kept + timeline.source.step_bytes if dataset.path else 0,
        "bytes_per_frame_raw": spec.frame_bytes,
        "bytes_per_frame_stored": kept / timeline.frame_count,
    }
