"""Feeds keep the data during training: on the device, decoded or packed, in memory, or compressed on disk.

All feeds give the same batches. A feed gives the learner `resident` arrays, which stay on the device, one
item per step, and `minibatch`, which makes transitions from both inside the compiled program.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data import machine
from optimist.data.packing import GROUP, LINE, Packed, joined, nbytes, packed
from optimist.data.sampling import Rows, Sampler, window
from optimist.data.timeline import Timeline, earlier, stacked
from optimist.data.transition import Spec, Transition
from optimist.errors import UsageError, did_you_mean
from optimist.training.memory import device_bytes, host_bytes

PLACES = ("auto", "device", "packed", "memory", "compressed")
STREAMED_BYTES = 16 * 2**20  # largest size of one prefetched chunk; there are two at a time
JUDGED = 64  # groups from which the size of all is estimated
AT_ONCE = 1024  # groups that are joined first: the system gets back the memory of large arrays only
THREADS = 4  # more wait for each other: on 16 cores 237,000 frames a second with 4, 171,000 with 16
BLOCK = 2**20  # rows of an array that are sent to the device together: 64 MiB of words, 220 of Atari's masks


class Feed(Protocol):
    resident: Any
    minibatch: Any  # (resident, item) -> Transition of one minibatch; hashable, so that programs are shared
    steps_at_once: int  # the largest `count` of `items`

    def items(self, first_step: int, count: int) -> Any:
        """The items of `count` steps from `first_step` on, (count, seeds, ...)."""
        ...


def feed_of(samplers: list[Sampler], where: str = "auto", memory: int | None = None) -> Feed:
    """The feed for these samplers, one per seed: the fastest that fits. `memory` limits the bytes of
    its frames, packed or decoded, in the memory of the host; none: half of what this run may use."""
    if where not in PLACES:
        raise UsageError(f'there is no feed "{where}": {did_you_mean(where, PLACES)}')
    dataset, budget = samplers[0].dataset, memory or host_bytes() // 2
    if where == "auto":
        where = _fastest(samplers, budget)
    elif where == "packed" and (needed := _packed_bytes(samplers)) > (available := _device_bytes()):
        raise UsageError(
            f"packed frames need about {needed / 2**30:,.1f} GiB, and the device has "
            f"{available / 2**30:,.1f} GiB for them: choose --feed compressed"
        )
    if where in ("device", "packed"):
        return DeviceFeed(samplers, packed=where == "packed")
    kept = dataset.timeline.frame_count if where == "memory" else budget // dataset.spec.frame_bytes
    return StreamedFeed(samplers, kept)


def _fastest(samplers: list[Sampler], budget: int) -> str:
    """The fastest feed that fits. To an accelerator the packed one is nearly as fast as the decoded one, and
    twice as fast as the memory of the host; on a CPU it is the slowest."""
    timeline, size = samplers[0].dataset.timeline, samplers[0].dataset.spec.frame_bytes
    on_device = min(budget, _device_bytes())
    if _frames_needed(samplers) * size <= on_device:
        return "device"
    if device_bytes() and _packed_bytes(samplers) <= on_device:
        return "packed"
    return "memory" if timeline.frame_count * size <= budget else "compressed"


def _frames_needed(samplers: list[Sampler]) -> int:
    """At most this many frames are on the device: those of the views alone, with the stack before a
    trajectory that begins within an episode. The memory of the host has the frames of the whole log."""
    logs = {id(sampler.dataset): sampler.dataset for sampler in samplers}.values()
    needed = sum(len(log) + log.spec.stack * len(log.starts) for log in logs)
    return min(needed, samplers[0].dataset.timeline.frame_count)


def _packed_bytes(samplers: list[Sampler]) -> int:
    timeline = samplers[0].dataset.timeline
    return estimated_bytes(timeline) * _frames_needed(samplers) // timeline.frame_count


def _device_bytes() -> int:
    """The share of an accelerator's memory that the data may use; on a CPU, half of what this run may use."""
    limit = device_bytes()
    return limit * 6 // 10 if limit else host_bytes() // 2


class DeviceFeed:
    """All frames are on the device, decoded or packed; the item of a step is its positions, a few bytes."""

    def __init__(self, samplers: list[Sampler], packed: bool = False):
        self._samplers = samplers
        logs = {id(sampler.dataset): sampler for sampler in samplers}  # each seed may have its own log
        begins = np.cumsum([0, *(len(sampler.dataset) for sampler in logs.values())])
        self._begin = [begins[list(logs).index(id(sampler.dataset))] for sampler in samplers]
        every = [sampler.all_rows() for sampler in logs.values()]
        rows = jax.tree.map(lambda *columns: np.concatenate(columns), *every)
        timeline, spec = samplers[0].dataset.timeline, samplers[0].dataset.spec
        rows, needed = _renumbered(timeline, rows, spec.stack)
        narrow = jax.tree.map(lambda c: c.astype(np.int32) if c.dtype == np.int64 else c, rows)
        if packed:
            frames: Any = on_device(timeline, needed)
        else:
            whole = len(needed) == timeline.frame_count
            # `jnp.asarray` would make a copy, and the accelerator would hold the frames twice meanwhile.
            frames = jax.device_put(timeline.decoded() if whole else timeline.frames(needed))
        gather = Gather(spec.stack, spec.actions)
        self.minibatch: Gather | Unpack = Unpack(spec, samplers[0].n_step) if packed else gather
        self.resident = (frames, jax.tree.map(jax.device_put, narrow))
        self.steps_at_once = 1 << 30

    def items(self, first_step: int, count: int):
        drawn = [
            begin + sampler.positions(first_step, count)
            for begin, sampler in zip(self._begin, self._samplers, strict=True)
        ]
        return jnp.asarray(np.stack(drawn, axis=1).astype(np.int32))


def _renumbered(timeline, rows: Rows, stack: int) -> tuple[Rows, np.ndarray]:
    """The rows with places among the frames that they need, and the numbers of these frames."""
    needed = np.zeros(timeline.frame_count, bool)
    for back in range(stack):
        needed[earlier(rows.frame, rows.age, back)] = True
        needed[earlier(rows.next_frame, rows.next_age, back)] = True
    if not needed.all():
        place = np.cumsum(needed) - 1
        rows = rows._replace(frame=place[rows.frame], next_frame=place[rows.next_frame])
    return rows, np.flatnonzero(needed)


class StreamedFeed:
    """The host makes the batches, one chunk ahead of the learner; the first `kept` frames stay decoded."""

    def __init__(self, samplers: list[Sampler], kept: int):
        self._samplers, self._timeline = samplers, samplers[0].dataset.timeline
        count, spec = self._timeline.frame_count, samplers[0].dataset.spec
        whole = kept >= count
        self._decoded = self._timeline.decoded() if whole else self._timeline.frames(np.arange(kept))
        self._thread = ThreadPoolExecutor(1, "batches")
        self._ahead: tuple[tuple[int, int], Future] | None = None
        per_step = 2 * spec.stack * spec.frame_bytes * samplers[0].batch * len(samplers)
        self.resident, self.minibatch = (), Join(spec.stack, spec.actions)
        self.steps_at_once = max(1, STREAMED_BYTES // per_step)

    def items(self, first_step: int, count: int):
        wanted = (first_step, count)
        ahead = self._ahead[1] if self._ahead and self._ahead[0] == wanted else None
        future = ahead or self._thread.submit(self._batches, *wanted)
        items = future.result()
        following = (first_step + count, count)
        self._ahead = (following, self._thread.submit(self._batches, *following))
        return items

    def _batches(self, first_step: int, count: int) -> "StreamedBatch":
        sampler = self._samplers[0]
        drawn = [each.rows(each.positions(first_step, count)) for each in self._samplers]
        rows: Rows = jax.tree.map(lambda *columns: np.stack(columns, axis=1), *drawn)
        numbers = window(rows, sampler.dataset.spec.stack, sampler.n_step)
        frames = self._frames(numbers.ravel())
        return streamed(frames.reshape(*numbers.shape, *sampler.dataset.spec.frame_shape), rows)

    def _frames(self, numbers: np.ndarray) -> np.ndarray:
        kept = len(self._decoded)
        if kept == self._timeline.frame_count:
            return self._decoded[numbers]
        if not kept:
            return self._timeline.frames(numbers)
        near = numbers < kept
        frames = np.empty((len(numbers), *self._decoded.shape[1:]), self._decoded.dtype)
        frames[near] = self._decoded[numbers[near]]
        frames[~near] = self._timeline.frames(numbers[~near])
        return frames


class StreamedBatch(NamedTuple):
    """Transitions with their frames, which the device stacks: so each frame is transferred once."""

    frames: Any  # (B, frames of a transition, *frame_shape)
    rows: Rows  # without the numbers of frames


def streamed(frames: Any, rows: Rows) -> StreamedBatch:
    return StreamedBatch(frames, rows._replace(frame=None, next_frame=None))


@dataclass(frozen=True)
class Gather:
    """Makes stacked transitions from resident frames."""

    stack: int
    actions: int = 0

    def __call__(self, resident, positions) -> Transition:
        frames, rows = resident
        row = jax.tree.map(lambda column: column[positions], rows)

        def observation(frame, age):
            return stacked(lambda back: frames[earlier(frame, age, back)], age, self.stack)

        return _transition(
            row,
            self.actions,
            observation=observation(row.frame, row.age),
            next_observation=observation(row.next_frame, row.next_age),
        )


def _transition(row: Rows, actions: int, **observations: Any) -> Transition:
    """The transition of a row, with its masks, (..., actions), if they were logged."""

    def mask(bits):
        return None if bits is None else jnp.unpackbits(bits, axis=-1, count=actions).astype(bool)

    return Transition(
        **observations,
        action=row.action,
        reward=row.reward,
        discount=row.discount,
        allowed=mask(row.allowed),
        next_allowed=mask(row.next_allowed),
        next_action=row.next_action,
        next_logged=row.next_logged,
    )


@dataclass(frozen=True)
class Join:
    """Makes stacked transitions from their frames, (B, frames of a transition, ...): the observation's stack
    comes first, the next observation's last."""

    stack: int
    actions: int = 0

    def __call__(self, resident, item: StreamedBatch) -> Transition:
        last, frames, rows = self.stack - 1, item.frames, item.rows
        return _transition(
            rows,
            self.actions,
            observation=stacked(lambda back: frames[:, last - back], rows.age, self.stack),
            next_observation=stacked(lambda back: frames[:, -1 - back], rows.next_age, self.stack),
        )


@dataclass(frozen=True)
class Unpack:
    """Makes stacked transitions from resident frames that are packed."""

    spec: Spec
    n_step: int

    def __call__(self, resident, positions) -> Transition:
        packed, rows = resident
        row = jax.tree.map(lambda column: column[positions], rows)
        numbers = window(row, self.spec.stack, self.n_step)  # so each frame is decoded once
        item = streamed(frames_at(packed, numbers, self.spec), row)
        return Join(self.spec.stack, self.spec.actions)((), item)


def on_device(timeline: Timeline, numbers: np.ndarray) -> Packed:
    """The frames with these numbers. The host holds their code once, and not their pixels."""
    borders = range(0, len(numbers), GROUP)
    with ThreadPoolExecutor(min(THREADS, machine.cores()), "packing") as pool:
        groups = pool.map(lambda first: packed(timeline.frames(numbers[first : first + GROUP])), borders)
        parts = [joined(list(islice(groups, AT_ONCE))) for _ in range(0, len(borders), AT_ONCE)]
    lines = np.cumsum([0, *(len(part.changed) for part in parts)])
    begins = [part.begins + line for part, line in zip(parts, lines.tolist(), strict=False)]
    backgrounds, masks, changed = ([part[place] for part in parts] for place in (0, 1, 3))
    parts.clear()  # the three lists are now the only ones that hold the arrays
    return Packed(
        jax.device_put(np.concatenate(backgrounds)),
        sent(masks),
        jax.device_put(np.concatenate(begins).astype(np.int32)),
        sent(changed),
    )


def sent(pieces: list[np.ndarray], block: int = BLOCK) -> Any:
    """The pieces one after the other in one array on the device. The list is emptied, and a piece is freed
    when it is there: to send one large array, JAX would copy it on the host first."""
    shape = (sum(map(len, pieces)), *pieces[0].shape[1:])
    whole, begin = jnp.zeros(shape, pieces[0].dtype), 0
    for rows in _blocks(pieces, block):
        whole = jax.block_until_ready(_placed(whole, rows, begin))
        begin += len(rows)
    return whole


def _blocks(pieces: list[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """All rows in blocks of this size, so that one program places them; the last block may be smaller."""
    pieces.reverse()
    rest = pieces[-1][:0]
    while pieces:
        rest = np.concatenate([rest, pieces.pop()])
        while len(rest) >= size:
            yield rest[:size]
            rest = rest[size:]
    if len(rest):
        yield rest


@partial(jax.jit, donate_argnums=0)
def _placed(whole: Any, rows: Any, begin: Any) -> Any:
    return jax.lax.dynamic_update_slice_in_dim(whole, rows, begin, axis=0)


def estimated_bytes(timeline: Timeline) -> int:
    """About the bytes of all frames when they are packed, from a few groups of them."""
    groups = -(-timeline.frame_count // GROUP)
    some = np.arange(0, groups, -(-groups // JUDGED))[:, None] * GROUP + np.arange(GROUP)
    parts = [packed(timeline.frames(part[part < timeline.frame_count])) for part in some]
    return sum(map(nbytes, parts)) * timeline.frame_count // sum(len(part.begins) for part in parts)


def frames_at(frames: Packed, numbers: Any, spec: Spec) -> Any:
    """The frames with these numbers, (...) -> (..., *frame_shape)."""
    # The barrier keeps XLA from decoding a word again for each of its bytes and for each stack that has it.
    words = jax.lax.optimization_barrier(_words(frames, numbers))
    pixels = words.view(jnp.uint8)[..., : spec.frame_bytes]
    if spec.frame_dtype == "bool":
        return pixels.astype(bool).reshape(*numbers.shape, *spec.frame_shape)
    return pixels.view(spec.frame_dtype).reshape(*numbers.shape, *spec.frame_shape)


def _words(frames: Packed, numbers: Any) -> Any:
    """(...) -> (..., words). A word that differs from the background is the nth of its frame's changed words,
    where n is the number of set bits before its own."""
    masks = frames.masks[numbers]
    before = _sum_of_earlier(jax.lax.population_count(masks).astype(jnp.int32))
    bits = jnp.uint32(1) << jax.lax.broadcasted_iota(jnp.uint32, (*masks.shape, 32), masks.ndim)
    within = jax.lax.population_count(masks[..., None] & (bits - 1)).astype(jnp.int32)
    differs, rank = (masks[..., None] & bits) != 0, before[..., None] + within
    size = frames.backgrounds.shape[-1]
    differs, rank = (each.reshape(*numbers.shape, -1)[..., :size] for each in (differs, rank))
    changed = frames.changed[frames.begins[numbers][..., None] + rank // LINE, rank % LINE]
    return jnp.where(differs, changed, frames.backgrounds[numbers // GROUP])


def _sum_of_earlier(counts: Any) -> Any:
    """The sum of the counts before each, (..., n) -> (..., n). A cumulative sum takes a GPU more kernels."""
    square = (*counts.shape, counts.shape[-1])
    place, other = (jax.lax.broadcasted_iota(jnp.int32, square, len(square) - back) for back in (2, 1))
    return jnp.where(other < place, counts[..., None, :], 0).sum(axis=-1)
