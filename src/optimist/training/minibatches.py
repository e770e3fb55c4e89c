"""What makes minibatches in the compiled program: from frames on the device, packed or not, or from those of
each step."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data import machine
from optimist.data.packing import GROUP, LINE, Packed, joined, nbytes, packed
from optimist.data.sampling import Rows, window
from optimist.data.timeline import Timeline, earlier, stacked
from optimist.data.transition import Spec, Transition

JUDGED = 64  # groups from which the size of all is estimated
AT_ONCE = 1024  # groups that are joined first: the system gets back the memory of large arrays only
THREADS = 4  # more wait for each other: on 16 cores 237,000 frames a second with 4, 171,000 with 16
BLOCK = 2**20  # rows of an array that are sent to the device together: 64 MiB of words, 220 of Atari's masks


class StreamedBatch(NamedTuple):
    """Transitions with their frames, which the device stacks: so each frame is transferred once."""

    frames: Any  # (B, frames of a transition, *frame_shape)
    age: Any
    next_age: Any
    action: Any
    reward: Any
    discount: Any
    allowed: Any = None
    next_allowed: Any = None
    next_action: Any = None
    next_logged: Any = None


def streamed(frames: Any, rows: Rows) -> StreamedBatch:
    columns = rows._asdict()
    return StreamedBatch(frames, **{name: columns[name] for name in StreamedBatch._fields[1:]})


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


def _transition(row: Rows | StreamedBatch, actions: int, **observations: Any) -> Transition:
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
        last = self.stack - 1
        return _transition(
            item,
            self.actions,
            observation=stacked(lambda back: item.frames[:, last - back], item.age, self.stack),
            next_observation=stacked(lambda back: item.frames[:, -1 - back], item.next_age, self.stack),
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
    size = prod(spec.frame_shape) * np.dtype(spec.frame_dtype).itemsize
    # The barrier keeps XLA from decoding a word again for each of its bytes and for each stack that has it.
    words = jax.lax.optimization_barrier(_words(frames, numbers))
    pixels = words.view(jnp.uint8)[..., :size]
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
