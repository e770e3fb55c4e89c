"""The episodes of a dataset: columns with one entry per episode, and each episode as its transitions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from optimist.data.timeline import Timeline, decoded_stacks, stacked
from optimist.data.transition import Spec, Transition


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
        stacks = decoded_stacks(self.timeline.frames, self._frame_numbers, self._age, self.spec.stack)
        return self.spec.in_users_layout(stacks)

    def __iter__(self) -> Iterator[Transition]:
        first = self._frame_numbers[0]
        earliest = first - self._age[0]
        frames = self.timeline.frames(np.arange(earliest, first + self.length + 1))

        def observation(step: int) -> np.ndarray:
            at = int(first - earliest) + step
            found: np.ndarray = stacked(
                lambda back: frames[max(0, at - back)], self._age[step], self.spec.stack
            )
            return self.spec.in_users_layout(found)

        columns = zip(self.actions, self.rewards, strict=True)
        following = observation(0)
        for step, (action, reward) in enumerate(columns):
            before, following = following, observation(step + 1)
            ends = self.terminal and step == self.length - 1
            yield Transition(before, action, reward, np.float32(not ends), following)

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
