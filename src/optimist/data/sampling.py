"""The choice of the transitions for each training step."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optimist.data.timeline import Masks, decoded_stacks, earlier
from optimist.data.transition import Transition
from optimist.data.views import View
from optimist.errors import DataError

LOADS = 1 << 63  # counters from here on choose buffers; those below choose transitions
STEPS_PER_BLOCK = 256  # one counter block of the generator serves this many steps


class Rows(NamedTuple):
    """The columns of transitions, with frame numbers in place of frames. The age of an observation is the
    number of earlier frames in its stack that exist."""

    frame: Any
    age: Any
    action: Any
    reward: Any
    discount: Any
    next_frame: Any
    next_age: Any
    allowed: Any = None  # the actions that could be chosen, as bits, if they were logged
    next_allowed: Any = None  # those that can be chosen in the next frame
    next_action: Any = None  # the action that was logged next, if the agent asks for it
    next_logged: Any = None  # false where the log has none


@dataclass(frozen=True)
class Sampler:
    """Uniform batches: the batch of step t depends only on the dataset, the seed and t."""

    dataset: View
    batch: int = 32
    gamma: float = 0.99
    n_step: int = 1
    clip: float | None = None  # rewards are clipped to [-clip, clip] before they are summed
    seed: int = 0
    scale: float = 1.0  # rewards are multiplied by this before they are clipped
    next_actions: bool = False  # transitions have the next logged action

    def __post_init__(self) -> None:
        if self.batch < 1 or self.n_step < 1 or not 0 <= self.gamma <= 1:
            raise DataError(
                f"batch {self.batch}, n_step {self.n_step}, gamma {self.gamma}: "
                "the first two must be at least 1, and gamma from 0 to 1"
            )
        if self.clip is not None and not self.clip > 0:
            raise DataError(
                f"clip is {self.clip:g}: rewards are clipped to [-clip, clip], so give one above 0"
            )

    @cached_property
    def _key(self) -> int:
        digest = hashlib.sha256(f"{self.dataset.fingerprint} {self.seed}".encode()).digest()
        return int.from_bytes(digest[:16], "little")

    def positions(self, first_step: int, count: int) -> np.ndarray:
        """The positions in the dataset that steps `first_step`, ... train on, (count, batch)."""
        first_block, skipped = divmod(first_step, STEPS_PER_BLOCK)
        blocks = -(-(skipped + count) // STEPS_PER_BLOCK)
        drawn = [self._block(first_block + number) for number in range(blocks)]
        empty = np.empty((0, self.batch), np.int64)
        return np.concatenate([empty, *drawn])[skipped : skipped + count]

    def _block(self, number: int) -> np.ndarray:
        # The block number is the counter's upper part, so that blocks never overlap.
        generator = np.random.Generator(np.random.Philox(key=self._key, counter=number << 64))
        return generator.integers(0, len(self.dataset), size=(STEPS_PER_BLOCK, self.batch))

    def rows(self, positions: np.ndarray) -> Rows:
        """The n-step transitions at these positions. A window ends at the latest where its range ends; it
        bootstraps from the frame there unless the episode terminated."""
        dataset, timeline = self.dataset, self.dataset.timeline
        ranges = dataset.ranges_at(positions)
        step = dataset.steps_at(positions, ranges)
        length = np.minimum(self.n_step, dataset.stops[ranges] - step)
        episode = timeline.episode_of(step)
        since_start = step - timeline.episode_starts[episode]
        oldest = dataset.spec.stack - 1
        discount = np.power(self.gamma, length) * ~timeline.terminal[step + length - 1]
        following, stop, masks = step + length, dataset.stops[ranges], timeline.allowed
        next_allowed = None
        if masks is not None:
            # Where it is not known, the last step's own stands for it: if every action counted, so would
            # those that nobody can take.
            after = timeline.allowed_after(following - 1)
            next_allowed = np.where(after.any(axis=-1, keepdims=True), after, masks.bits[following - 1])
        return Rows(
            frame=step + episode,
            age=np.minimum(since_start, oldest).astype(np.int32),
            action=timeline.action[step],
            reward=self._folded_reward(step, length),
            discount=discount.astype(np.float32),
            next_frame=step + episode + length,
            next_age=np.minimum(since_start + length, oldest).astype(np.int32),
            allowed=None if masks is None else masks.bits[step],
            next_allowed=next_allowed,
            next_action=timeline.action[np.minimum(following, stop - 1)] if self.next_actions else None,
            next_logged=following < stop if self.next_actions else None,
        )

    def _folded_reward(self, step: np.ndarray, length: np.ndarray) -> np.ndarray:
        folded = np.zeros(np.shape(step))
        for ahead in range(self.n_step):
            reward = self.dataset.timeline.reward[np.minimum(step + ahead, step + length - 1)]
            if self.scale != 1:
                reward = self.scale * reward
            if self.clip is not None:
                reward = np.clip(reward, -self.clip, self.clip)
            folded += np.where(ahead < length, self.gamma**ahead * reward, 0)
        return folded.astype(np.float32)

    def all_rows(self) -> Rows:
        """The rows of every position, for data that is kept on the device."""
        return self.rows(np.arange(len(self.dataset)))


@dataclass(frozen=True)
class FiveBuffers(Sampler):
    """Each iteration loads five buffers of a million consecutive transitions, chosen without replacement;
    each minibatch comes from one of them. The last buffer may be shorter but is chosen as often as the
    others, so its transitions are sampled more often. For comparison only: `Sampler` is uniform."""

    updates_per_load: int = 62_500
    buffers: int = 5
    buffer_size: int = 1_000_000

    @cached_property
    def _in_time(self) -> np.ndarray:
        """The positions of the view, sorted by time."""
        return np.argsort(self.dataset.timeline.time[self.dataset.steps()], kind="stable")

    def _loaded(self, load: int) -> np.ndarray:
        """The numbers of the buffers that this iteration trains on."""
        generator = np.random.Generator(np.random.Philox(key=self._key, counter=(LOADS + load) << 64))
        count = -(-len(self.dataset) // self.buffer_size)
        return generator.permutation(count)[: self.buffers]

    def _block(self, number: int) -> np.ndarray:
        steps = number * STEPS_PER_BLOCK + np.arange(STEPS_PER_BLOCK)
        generator = np.random.Generator(np.random.Philox(key=self._key, counter=number << 64))
        which, where = generator.random(STEPS_PER_BLOCK), generator.random((STEPS_PER_BLOCK, self.batch))
        loads = steps // self.updates_per_load
        loaded = {load: self._loaded(load) for load in np.unique(loads).tolist()}
        buffers = [loaded[load] for load in loads.tolist()]
        chosen = np.array([some[int(w * len(some))] for some, w in zip(buffers, which, strict=True)])
        start = chosen * self.buffer_size
        size = np.minimum(self.buffer_size, len(self.dataset) - start)
        return self._in_time[start[:, None] + (where * size[:, None]).astype(np.int64)]


SAMPLERS = {"uniform": Sampler, "five-buffers": FiveBuffers}


def window(rows: Rows, stack: int, n_step: int) -> Any:
    """The numbers of the frames that each transition needs, oldest first, (..., frames): the first `stack`
    are its observation, the last `stack` its successor. Where a stack reaches back before its episode, the
    number is that of its first frame, which counts as black there."""
    back = range(stack - 1, -1, -1)
    numbers = [earlier(rows.frame, rows.age, each) for each in back]
    if n_step == 1:
        numbers.append(rows.next_frame)
    else:
        numbers += [earlier(rows.next_frame, rows.next_age, each) for each in back]
    return rows.frame.__array_namespace__().stack(numbers, axis=-1)


def transitions(
    sampler: Sampler, positions: np.ndarray, frames_of: Callable[[np.ndarray], np.ndarray]
) -> Transition:
    """The transitions at these positions; a frame needed by both observations is decoded once."""
    rows = sampler.rows(positions)
    frame = np.stack([rows.frame, rows.next_frame])
    age = np.stack([rows.age, rows.next_age])
    observation, next_observation = decoded_stacks(frames_of, frame, age, sampler.dataset.spec.stack)
    actions = sampler.dataset.spec.actions
    return Transition(
        observation=observation,
        action=rows.action,
        reward=rows.reward,
        discount=rows.discount,
        next_observation=next_observation,
        allowed=None if rows.allowed is None else Masks(rows.allowed, actions)[:],
        next_allowed=None if rows.next_allowed is None else Masks(rows.next_allowed, actions)[:],
        next_action=rows.next_action,
        next_logged=rows.next_logged,
    )
