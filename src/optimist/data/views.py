"""Views of a dataset: ranges of steps on a timeline. Selecting other ranges copies nothing."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from optimist.data.episodes import Episodes, episodes_in_words
from optimist.data.rules.joining import LeftOut
from optimist.data.timeline import Timeline
from optimist.data.transition import Spec, number, whole_number
from optimist.errors import DataError, in_one_line


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """Transitions on a timeline, as ranges of steps that each lie inside one episode."""

    spec: Spec
    timeline: Timeline
    starts: np.ndarray
    stops: np.ndarray
    fingerprint: str
    provenance: dict[str, Any]
    path: Path | None = None
    recording: str = ""  # of a part: the fingerprint of the whole log

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def offsets(self) -> np.ndarray:
        """The position in this view at which each range begins, then the number of transitions."""
        return np.concatenate([[0], np.cumsum(self.stops - self.starts)])

    def ranges_at(self, positions: np.ndarray) -> np.ndarray:
        """The number of the range that contains each of these positions."""
        return np.searchsorted(self.offsets, positions, side="right") - 1

    def steps(self) -> np.ndarray:
        """The timeline steps of this view, in order."""
        return np.repeat(self.starts - self.offsets[:-1], self.stops - self.starts) + np.arange(len(self))

    def steps_at(self, positions: np.ndarray) -> np.ndarray:
        """The timeline steps at these positions of this view."""
        ranges = self.ranges_at(positions)
        return self.starts[ranges] + positions - self.offsets[ranges]

    def borders(self) -> np.ndarray:
        """The start and stop of every range, for `ufunc.reduceat`: every second result is that of a range."""
        borders = np.stack([self.starts, self.stops], axis=1).ravel()
        return borders[:-1] if len(borders) and borders[-1] == len(self.timeline) else borders

    @cached_property
    def episodes(self) -> Episodes:
        """The episodes: columns such as `episodes.returns`, and single episodes as `episodes[i]`."""
        timeline, last = self.timeline, self.stops - 1
        terminal, truncated = timeline.terminal[last], timeline.truncated[last]
        begins = timeline.episode_starts[timeline.episode_of(self.starts)] == self.starts
        return Episodes(
            spec=self.spec,
            timeline=timeline,
            starts=self.starts,
            lengths=self.stops - self.starts,
            returns=np.add.reduceat(timeline.reward, self.borders(), dtype=np.float64)[::2],
            terminal=terminal,
            truncated=truncated,
            cut=~(terminal | truncated) | ~begins,
            time=timeline.time[last],
        )

    def first(self, count: int) -> Self:
        """The first `count` transitions by time; it may cut episodes."""
        count = self._checked("first", count)
        kept = self._kept_before(min(count, len(self)))
        return self._view(self.starts, self.starts + kept, f"first({count})")

    def last(self, count: int) -> Self:
        """The last `count` transitions by time; it may cut episodes."""
        count = self._checked("last", count)
        dropped = self._kept_before(max(len(self) - count, 0))
        return self._view(self.starts + dropped, self.stops, f"last({count})")

    def fraction(self, share: float, seed: int = 0) -> Self:
        """A random share of the trajectories, each kept whole."""
        share = number("share", share)
        seed = whole_number("seed", seed, least=0)
        trajectories = len(self.starts)
        chosen = np.random.default_rng(seed).permutation(trajectories)[: _count(trajectories, share)]
        return self._chosen(chosen, f"fraction({share}, {seed})")

    def hold_out(self, share: float, seed: int = 0, *, last: bool = False) -> tuple[Self, Self]:
        """(kept, held): a random share of the trajectories is held back, or the last of them by time; each
        is whole. Train on the first part, choose and measure on the second."""
        share = number("share", share)
        seed = whole_number("seed", seed, least=0)
        trajectories = len(self.starts)
        if not 0 < share < 1 or trajectories < 2:
            raise DataError(
                f"a share of {share} of {episodes_in_words(trajectories)} cannot be held back; choose one "
                "above 0 and below 1, of at least 2 episodes"
            )
        count = min(_count(trajectories, share), trajectories - 1)
        if last:
            order, recipe = np.argsort(-self.episodes.time, kind="stable"), f"hold_out({share}, last)"
        else:
            order = np.random.default_rng(seed).permutation(trajectories)
            recipe = f"hold_out({share}, {seed})"
        return self._chosen(order[count:], f"{recipe} kept"), self._chosen(order[:count], f"{recipe} held")

    def best(self, share: float) -> Self:
        """The share of the complete episodes with the highest returns; of equal returns the earlier."""
        share = number("share", share)
        complete = np.flatnonzero(self.episodes.complete)
        if not len(complete):
            raise DataError(
                "there is no complete episode to choose the best from; use first, last or fraction"
            )
        order = np.lexsort((self.episodes.time[complete], -self.episodes.returns[complete]))
        return self._chosen(complete[order[: _count(len(complete), share)]], f"best({share})")

    def played_by(self, seed: int) -> Self:
        """The steps of one player, for data that several players with different seeds recorded."""
        players, lanes = _players(self.provenance)
        if seed not in players:
            known = in_one_line(", ".join(map(str, players)) or "none")
            raise DataError(f"no player with seed {seed} was recorded; recorded seeds: {known}")
        # A recording that was continued has new lanes for all players, in the same order.
        timeline = self.timeline
        lane = timeline.lanes[np.searchsorted(timeline.lane_starts, self.starts, side="right") - 1]
        player = lane // lanes % len(players)
        return self._chosen(np.flatnonzero(player == players.index(seed)), f"played_by({seed})")

    def _checked(self, name: str, count: int) -> int:
        count = whole_number(name, count)
        if count < 1:
            raise DataError(f"a view of {count} transitions is empty; ask for 1 to {len(self)}")
        return count

    def _kept_before(self, count: int) -> np.ndarray:
        """How many steps of each range are among the view's first `count`."""
        if count == 0:
            return np.zeros(len(self.starts), np.int64)
        time = self.timeline.time
        latest = np.partition(time[self.steps()], count - 1)[count - 1]
        early = np.concatenate([[0], np.cumsum(time <= latest)])
        return early[self.stops] - early[self.starts]

    def _chosen(self, ranges: np.ndarray, recipe: str) -> Self:
        ranges = np.sort(ranges)
        return self._view(self.starts[ranges], self.stops[ranges], recipe)

    def _view(self, starts: np.ndarray, stops: np.ndarray, recipe: str) -> Self:
        kept = stops > starts
        fingerprint = hashlib.sha256(f"{self.fingerprint} {recipe}".encode()).hexdigest()
        recording = self.recording or self.fingerprint
        part = replace(
            self, starts=starts[kept], stops=stops[kept], fingerprint=fingerprint, recording=recording
        )
        return part if len(part) == len(self) else replace(part, provenance=part._provenance_of_part())

    def _provenance_of_part(self) -> dict[str, Any]:
        """That of the log, with the steps that this part may lack. Where an import left out steps is not
        recorded, but each was the last of an episode without a terminal step."""
        whole = LeftOut.said(self.provenance)
        if not whole.steps:
            return self.provenance
        ends = np.append(self.timeline.episode_starts[1:], len(self.timeline))
        lacking = np.isin(self.stops, ends) & ~self.timeline.terminal[self.stops - 1]
        others = {name: value for name, value in self.provenance.items() if name != "left_out"}
        return LeftOut(min(whole.steps, int(lacking.sum())), at_most=True).noted_in(others)


def _players(provenance: dict[str, Any]) -> tuple[list[int], int]:
    """The recorded seeds and the number of lanes of each; DataError if the file's values are impossible."""
    players, collection = provenance.get("seeds", []), provenance.get("collection", {})
    lanes = collection.get("lanes", 0) if isinstance(collection, dict) else 0
    if not isinstance(players, list) or (players and (type(lanes) is not int or not 0 < lanes < 2**31)):
        raise DataError("the data does not say which lanes each player had; record it again")
    if len(players) > 1 and provenance.get("appended"):
        raise DataError(
            "steps were appended to a recording of several players, so it is not known who played which; "
            "learn from the whole log, or keep the recordings apart"
        )
    return players, lanes


def _count(available: int, share: float) -> int:
    if not 0 < share <= 1:
        raise DataError(f"a share of {share} makes no view; choose one above 0 and at most 1")
    return max(1, round(available * share))
