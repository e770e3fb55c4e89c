"""How the online agents of a recording played, and who of them ended best."""

from typing import NamedTuple

import numpy as np

from optimist.data.dataset import Dataset

FINAL_SHARE = 0.1  # of a log: how its player played in the end


class LoggedAgent(NamedTuple):
    """One online seed: how it played in the end, and what is in its log on average."""

    seed: int
    final_return: float
    mean_return: float


def ranked(dataset: Dataset) -> list[LoggedAgent]:
    """The players of a recording, the best first: by how each played in the end."""
    players = []
    for seed in dataset.provenance["seeds"]:
        log = dataset.played_by(seed)
        final, whole = final_returns(log), log.episodes.returns[log.episodes.complete]
        anything = log.episodes.returns  # a short log may have no complete episode
        players.append(LoggedAgent(seed, *(_mean(those, anything) for those in (final, whole))))
    return sorted(players, key=lambda player: player.final_return, reverse=True)


def final_returns(log: Dataset) -> np.ndarray:
    """Of the complete episodes that ended in the last tenth of the play; one may be longer than that."""
    episodes, time = log.episodes, log.timeline.time[log.steps()]
    if not len(time):
        return episodes.returns
    recent = episodes.time > time.max() - FINAL_SHARE * (time.max() - time.min() + 1)
    return episodes.returns[episodes.complete & recent]


def _mean(returns: np.ndarray, otherwise: np.ndarray) -> float:
    return float((returns if len(returns) else otherwise).mean())
