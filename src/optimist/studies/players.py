"""How the online agents of a recording played, and who of them ended best."""

from typing import NamedTuple

from optimist.data.store import Dataset

FINAL_SHARE = 0.1  # of a log: how its player played in the end


class Player(NamedTuple):
    """One online seed: how it played in the end, and what is in its log on average."""

    seed: int
    final_return: float
    mean_return: float


def ranked(dataset: Dataset) -> list[Player]:
    """The players of a recording, the best first: by the episodes in the last tenth of what each did."""
    players = []
    for seed in dataset.provenance["seeds"]:
        log = dataset.played_by(seed)
        final = log.last(max(1, int(FINAL_SHARE * len(log))))
        players.append(Player(seed, _mean_return(final, otherwise=log), _mean_return(log, otherwise=log)))
    return sorted(players, key=lambda player: player.final_return, reverse=True)


def _mean_return(log: Dataset, *, otherwise: Dataset) -> float:
    """Over complete episodes; where a short log has none, over the pieces there are."""
    episodes = log.episodes
    chosen = episodes.returns[episodes.complete] if episodes.complete.any() else otherwise.episodes.returns
    return float(chosen.mean())
