"""Views of a dataset, ranges of its steps without a copy: their episodes, and what they earned."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import numpy as np

from optimist.data.rules.joining import LeftOut
from optimist.data.timeline import Timeline, decoded_stacks
from optimist.data.transition import Spec, Transition, number, whole_number
from optimist.errors import DataError, in_one_line

RETURNS_AT_ONCE = 2**20  # steps that are summed at once, so that a long log needs little memory
STEPS_AT_ONCE = 256  # of an episode, whose observations are stacked together
NEGLIGIBLE = 1e-9  # a weight below which further rewards are left out


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

    def steps_at(self, positions: np.ndarray, ranges: np.ndarray | None = None) -> np.ndarray:
        """The timeline steps at these positions of this view, which are in these ranges."""
        ranges = self.ranges_at(positions) if ranges is None else ranges
        return self.starts[ranges] + positions - self.offsets[ranges]

    def borders(self) -> np.ndarray:
        """The start and stop of every range, for `ufunc.reduceat`: every second result is that of a range."""
        borders = np.stack([self.starts, self.stops], axis=1).ravel()
        return borders[:-1] if len(borders) and borders[-1] == len(self.timeline) else borders

    @cached_property
    def episodes(self) -> "Episodes":
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
        return self._view(self.starts, self.starts + self._kept_before(count), f"first({count})")

    def last(self, count: int) -> Self:
        """The last `count` transitions by time; it may cut episodes."""
        count = self._checked("last", count)
        dropped = self._kept_before(len(self) - count)
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
        players, collection = self.provenance.get("seeds", []), self.provenance.get("collection", {})
        lanes = collection.get("lanes", 0) if isinstance(collection, dict) else 0
        if not isinstance(players, list) or (
            players and (type(lanes) is not int or not 0 < lanes < 2**31)
        ):  # the file may say anything
            raise DataError("the data does not say which lanes each player had; record it again")
        if len(players) > 1 and self.provenance.get("appended"):
            raise DataError(
                "steps were appended to a recording of several players, so it is not known who played which; "
                "learn from the whole log, or keep the recordings apart"
            )
        if seed not in players:
            seeds = in_one_line(", ".join(map(str, players)) or "none")
            raise DataError(f"no player with seed {seed} was recorded; recorded seeds: {seeds}")
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
        if count <= 0:
            return np.zeros(len(self.starts), np.int64)
        count = min(count, len(self))
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
        starts, stops = starts[kept], stops[kept]
        part = replace(self, starts=starts, stops=stops, fingerprint=fingerprint, recording=recording)
        left_out = LeftOut.said(self.provenance)
        if len(part) == len(self) or not left_out.steps:
            return part
        # Where an import left out steps is not recorded, but each was the last of an episode without a
        # terminal step.
        ends = np.append(self.timeline.episode_starts[1:], len(self.timeline))
        lacking = np.isin(part.stops, ends) & ~self.timeline.terminal[part.stops - 1]
        others = {name: value for name, value in self.provenance.items() if name != "left_out"}
        left_out = LeftOut(min(left_out.steps, int(lacking.sum())), at_most=True)
        return replace(part, provenance=left_out.noted_in(others))


def episodes_in_words(count: int) -> str:
    return "1 episode" if count == 1 else f"{count:,} episodes"


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode, or its part in a view. Iterating gives its transitions, undiscounted: the discount is 0
    where the game ended and 1 elsewhere. Observations have the layout of the log, as a policy takes them."""

    spec: Spec
    timeline: Timeline
    start: int  # its first step on the timeline
    length: int
    return_: float  # undiscounted, of unclipped rewards
    terminal: bool  # the game ended
    truncated: bool  # a time limit ended it
    cut: bool  # its start or its end is missing

    def __len__(self) -> int:
        return self.length

    @property
    def actions(self) -> np.ndarray:
        return self.timeline.action[self._steps]

    @property
    def rewards(self) -> np.ndarray:
        return self.timeline.reward[self._steps]

    @property
    def probabilities(self) -> np.ndarray | None:
        """Those with which the logging policy chose the actions, (length,), if they were logged."""
        logged = self.timeline.probability
        return None if logged is None else logged[self._steps]

    @property
    def allowed_actions(self) -> np.ndarray | None:
        """Which actions could be chosen, (length, actions), if that was logged."""
        logged = self.timeline.allowed
        return None if logged is None else logged[self._steps]

    @property
    def frames(self) -> np.ndarray:
        """The recorded frames, with the one after the last step, (length + 1, ...)."""
        return self.spec.in_users_layout(self.timeline.frames(self._frame_numbers))

    @property
    def observations(self) -> np.ndarray:
        """The stacked observations, with the one after the last step, (length + 1, ...)."""
        return self._observations(slice(None))

    def _observations(self, part: slice) -> np.ndarray:
        numbers, age = self._frame_numbers[part], self._age[part]
        stacks = decoded_stacks(self.timeline.frames, numbers, age, self.spec.stack)
        return self.spec.in_users_layout(stacks)

    def __iter__(self) -> Iterator[Transition]:
        for first in range(0, self.length, STEPS_AT_ONCE):
            part = slice(first, first + STEPS_AT_ONCE + 1)
            seen = self._observations(part)
            columns = zip(self.actions[part], self.rewards[part], seen, seen[1:], strict=False)
            for step, (action, reward, before, after) in enumerate(columns, first + 1):
                ends = self.terminal and step == self.length
                yield Transition(before, action, reward, np.float32(not ends), after)

    def __repr__(self) -> str:
        end = "terminal" if self.terminal else "truncated" if self.truncated else "cut"
        return f"Episode: {self.length:,} steps, return {self.return_:g}, {end}"

    @property
    def _steps(self) -> slice:
        return slice(self.start, self.start + self.length)

    @cached_property
    def _number(self) -> int:
        return int(self.timeline.episode_of(np.array([self.start]))[0])

    @cached_property
    def _frame_numbers(self) -> np.ndarray:
        return self.start + self._number + np.arange(self.length + 1)

    @cached_property
    def _age(self) -> np.ndarray:
        since_start = self.start - self.timeline.episode_starts[self._number] + np.arange(self.length + 1)
        return np.minimum(since_start, self.spec.stack - 1)


@dataclass(frozen=True, eq=False)
class Episodes(Sequence[Episode]):
    """The episodes of a view. Columns have one entry per episode; `episodes[i]` is one episode."""

    spec: Spec
    timeline: Timeline
    starts: np.ndarray  # first steps on the timeline
    lengths: np.ndarray
    returns: np.ndarray  # undiscounted sums of unclipped rewards
    terminal: np.ndarray
    truncated: np.ndarray
    cut: np.ndarray  # its start or its end is missing: in the recording, or in this view
    time: np.ndarray  # the time of its last step

    @property
    def complete(self) -> np.ndarray:
        return ~self.cut

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, which: int) -> Episode: ...
    @overload
    def __getitem__(self, which: slice) -> list[Episode]: ...
    def __getitem__(self, which: int | slice) -> Episode | list[Episode]:
        if isinstance(which, slice):
            return [self[number] for number in range(len(self))[which]]
        at = range(len(self))[which]  # IndexError beyond the last
        return Episode(
            spec=self.spec,
            timeline=self.timeline,
            start=int(self.starts[at]),
            length=int(self.lengths[at]),
            return_=float(self.returns[at]),
            terminal=bool(self.terminal[at]),
            truncated=bool(self.truncated[at]),
            cut=bool(self.cut[at]),
        )

    def __repr__(self) -> str:
        complete = self.returns[self.complete]
        mean = f", mean return {complete.mean():.4g}" if len(complete) else ""
        return f"{episodes_in_words(len(self))}, {len(complete):,} of them complete{mean}"


def _count(available: int, share: float) -> int:
    if not 0 < share <= 1:
        raise DataError(f"a share of {share} makes no view; choose one above 0 and at most 1")
    return max(1, round(available * share))


class LoggedValues(NamedTuple):
    """The discounted returns-to-go of a log, in numbers."""

    mean: float
    largest: float  # in size: of -5 and 3 it is 5


def returns_to_go(view: View, gamma: float, *, clip: float | None = None) -> np.ndarray:
    """The discounted sum of rewards from each step to the end of its range, (n,)."""
    return np.concatenate([returns for returns, _ in _returns(view, gamma, clip, 1.0)])


def logged_values(view: View, gamma: float, *, clip: float | None = None, scale: float = 1.0) -> LoggedValues:
    """The mean and the largest return-to-go, of rewards scaled and then clipped as in training.

    An episode whose end is not in the log goes on unseen: what follows counts as the mean return-to-go. That
    mean is the solution of mean = (sum of logged rewards + mean * sum of weights of what follows) / steps."""
    total, unseen, largest = 0.0, 0.0, 0.0
    for returns, following in _returns(view, gamma, clip, scale):
        total += returns.sum()
        unseen += following.sum()
        largest = max(largest, float(np.abs(returns).max()))
    seen = len(view) - unseen
    if unseen == 0 or seen <= NEGLIGIBLE * len(view):  # without discount and without an end, nothing is known
        return LoggedValues(total / len(view), largest)
    mean = total / seen
    whole = (returns + mean * following for returns, following in _returns(view, gamma, clip, scale))
    return LoggedValues(mean, max(float(np.abs(each).max()) for each in whole))


def _returns(
    view: View, gamma: float, clip: float | None, scale: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each step the discounted sum of its range's rewards from there on, and the weight of what follows
    the range: 0 if the range ends with a terminal step."""
    first, ranges = 0, len(view.starts)
    while first < ranges:
        last = max(
            first + 1,
            int(np.searchsorted(view.offsets, view.offsets[first] + RETURNS_AT_ONCE, side="right")) - 1,
        )
        positions = np.arange(view.offsets[first], view.offsets[last])
        number = view.ranges_at(positions)
        steps, stop = view.steps_at(positions), view.stops[number]
        rewards = scale * view.timeline.reward[steps].astype(np.float64)
        rewards = rewards if clip is None else np.clip(rewards, -clip, clip)
        left = stop - steps
        # Over the steps that a range still has, by doubling: the sum over 2n steps is the sum over n plus
        # gamma^n times the sum over n that begins n steps later.
        sums, count, weight = rewards.copy(), 1, gamma
        while count < left.max() and weight > NEGLIGIBLE:
            sums[:-count] += np.where(left[:-count] > count, weight * sums[count:], 0)
            count, weight = 2 * count, weight * weight
        yield sums, gamma**left * ~view.timeline.terminal[stop - 1]
        first = last
