"""The returns of the online agents of a recording, ranked by their final play."""

from typing import NamedTuple

import numpy as np

from optimist.data.dataset import Dataset

FINAL_SHARE = 0.1  # the last part of a log, which measures the final play


class LoggedAgent(NamedTuple):
    """One online seed: its mean return at the end of its log, and over its whole log."""

    seed: int
    final_return: float
    mean_return: float


def ranked(dataset: Dataset) -> list[LoggedAgent]:
    """The players of a recording, sorted by final return, the best first."""
    players = []
    for seed in dataset.provenance["seeds"]:
        log = dataset.played_by(seed)
        final, whole = final_returns(log), log.episodes.returns[log.episodes.complete]
        anything = log.episodes.returns  # a short log may have no complete episode
        players.append(LoggedAgent(seed, *(_mean(those, anything) for those in (final, whole))))
    return sorted(players, key=lambda player: player.final_return, reverse=True)


def final_returns(log: Dataset) -> np.ndarray:
    """Returns of the complete episodes that ended in the last tenth of the log; they may begin earlier."""
    episodes, time = log.episodes, log.timeline.time[log.steps()]
    if not len(time):
        return episodes.returns
    recent = episodes.time > time.max() - FINAL_SHARE * (time.max() - time.min() + 1)
    return episodes.returns[episodes.complete & recent]


def _mean(returns: np.ndarray, otherwise: np.ndarray) -> float:
    return float((returns if len(returns) else otherwise).mean())
