"""Views of a dataset: other ranges of the same timeline, nothing is copied."""

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optimist.errors import DataError, in_one_line

if TYPE_CHECKING:
    from optimist.data.dataset import Dataset


def first(dataset: "Dataset", count: int) -> "Dataset":
    """The `count` transitions that were experienced first; it may cut episodes."""
    kept = _kept_before(dataset, _whole_number(dataset, count))
    return _view(dataset, dataset.starts, dataset.starts + kept, f"first({count})")


def last(dataset: "Dataset", count: int) -> "Dataset":
    """The `count` transitions that were experienced last; it may cut episodes."""
    dropped = _kept_before(dataset, len(dataset) - _whole_number(dataset, count))
    return _view(dataset, dataset.starts + dropped, dataset.stops, f"last({count})")


def fraction(dataset: "Dataset", share: float, seed: int = 0) -> "Dataset":
    """A random share of the trajectories, each of them whole."""
    trajectories = len(dataset.starts)
    chosen = np.random.default_rng(seed).permutation(trajectories)[: _count(trajectories, share)]
    return _chosen(dataset, chosen, f"fraction({share}, {seed})")


def best(dataset: "Dataset", share: float) -> "Dataset":
    """The share of the complete episodes with the highest returns; of equals the earlier."""
    episodes = dataset.episodes
    complete = np.flatnonzero(episodes.complete)
    if not len(complete):
        raise DataError("there is no complete episode to choose the best from; use first, last or fraction")
    order = np.lexsort((episodes.time[complete], -episodes.returns[complete]))
    return _chosen(dataset, complete[order[: _count(len(complete), share)]], f"best({share})")


def played_by(dataset: "Dataset", seed: int) -> "Dataset":
    """What one of the players did where several seeds were recorded together, each in lanes of its own."""
    players, lanes = _players(dataset.provenance)
    if seed not in players:
        known = ", ".join(map(str, players)) or "nothing of who played"
        raise DataError(f"no player of seed {seed} was recorded: the data knows {in_one_line(known)}")
    # A recording that was gone on with has new lanes for all players, in the same order.
    lane = dataset.timeline.lanes[
        np.searchsorted(dataset.timeline.lane_starts, dataset.starts, side="right") - 1
    ]
    player = lane // lanes % len(players)
    return _chosen(dataset, np.flatnonzero(player == players.index(seed)), f"played_by({seed})")


def _players(provenance: dict) -> tuple[list[int], int]:
    """The seeds that played, and the lanes of each, as far as a file can be believed."""
    players, collection = provenance.get("seeds", []), provenance.get("collection", {})
    lanes = collection.get("lanes", 0) if isinstance(collection, dict) else 0
    if not isinstance(players, list) or (players and (type(lanes) is not int or not 0 < lanes < 2**31)):
        raise DataError("the data does not say which lanes each of its players had; record it again")
    return players, lanes


def _whole_number(dataset: "Dataset", count: int) -> int:
    if count < 1:
        raise DataError(f"a view of {count} transitions is empty; ask for 1 to {len(dataset)}")
    return min(int(count), len(dataset))


def _count(available: int, share: float) -> int:
    if not 0 < share <= 1:
        raise DataError(f"a share of {share} makes no view; choose one above 0 and at most 1")
    return max(1, round(available * share))


def _kept_before(dataset: "Dataset", count: int) -> np.ndarray:
    """How many steps of each range are among the view's first `count`."""
    if count == 0:
        return np.zeros(len(dataset.starts), np.int64)
    time = dataset.timeline.time
    latest = np.partition(time[dataset.steps()], count - 1)[count - 1]
    early = np.concatenate([[0], np.cumsum(time <= latest)])
    return early[dataset.stops] - early[dataset.starts]


def _chosen(dataset: "Dataset", ranges: np.ndarray, recipe: str) -> "Dataset":
    ranges = np.sort(ranges)
    return _view(dataset, dataset.starts[ranges], dataset.stops[ranges], recipe)


def _view(dataset: "Dataset", starts: np.ndarray, stops: np.ndarray, recipe: str) -> "Dataset":
    kept = stops > starts
    fingerprint = hashlib.sha256(f"{dataset.fingerprint} {recipe}".encode()).hexdigest()
    return replace(dataset, starts=starts[kept], stops=stops[kept], fingerprint=fingerprint)
