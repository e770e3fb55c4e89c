"""Packed frames on the device: made from a timeline by all cores, decoded inside the compiled program."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data import machine
from optimist.data.packing import GROUP, LINE, Packed, joined, nbytes, packed
from optimist.data.timeline import Timeline
from optimist.data.transition import Spec

JUDGED = 64  # groups from which the size of all is estimated
AT_ONCE = 1024  # groups that are joined first: the system gets back the memory of large arrays only


def on_device(timeline: Timeline, numbers: np.ndarray) -> Packed:
    """The frames with these numbers. The host holds their code once, and not their pixels."""
    borders = range(0, len(numbers), GROUP)
    with ThreadPoolExecutor(machine.cores(), "packing") as pool:
        groups = pool.map(lambda first: packed(timeline.frames(numbers[first : first + GROUP])), borders)
        parts = [joined(list(islice(groups, AT_ONCE))) for _ in range(0, len(borders), AT_ONCE)]
    return jax.tree.map(jax.device_put, joined(parts))


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
