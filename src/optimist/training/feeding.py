"""Feeds keep the data during training: on the device, decoded or packed, in memory, or compressed on disk.

All feeds give the same batches. A feed gives the learner `resident` arrays, which stay on the device, one
item per step, and `minibatch`, which makes transitions from both inside the compiled program.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.sampling import Rows, Sampler, window
from optimist.data.timeline import earlier
from optimist.data.transition import Spec
from optimist.errors import UsageError, did_you_mean
from optimist.training.memory import device_bytes, host_bytes
from optimist.training.minibatches import (
    Gather,
    Join,
    StreamedBatch,
    Unpack,
    estimated_bytes,
    on_device,
    streamed,
)

PLACES = ("auto", "device", "packed", "memory", "compressed")
STREAMED_BYTES = 16 * 2**20  # largest size of one prefetched chunk; there are two at a time


class Feed(Protocol):
    resident: Any
    minibatch: Any  # (resident, item) -> Transition of one minibatch; hashable, so that programs are shared
    steps_at_once: int  # the largest `count` of `items`

    def items(self, first_step: int, count: int) -> Any:
        """The items of `count` steps from `first_step` on, (count, seeds, ...)."""
        ...


def feed_of(samplers: list[Sampler], where: str = "auto", memory: int | None = None) -> Feed:
    """The feed for these samplers, one per seed: the fastest that fits. `memory` limits the bytes of
    its frames, packed or decoded, in the memory of the host."""
    if where not in PLACES:
        raise UsageError(f'there is no feed "{where}": {did_you_mean(where, PLACES)}')
    dataset, budget = samplers[0].dataset, memory or _default_budget()
    if where == "auto":
        where = _fastest(samplers, budget)
    elif where == "packed":
        _check_that_packed_frames_fit(samplers)
    if where in ("device", "packed"):
        return DeviceFeed(samplers, packed=where == "packed")
    kept = dataset.timeline.frame_count if where == "memory" else budget // frame_bytes(dataset.spec)
    return StreamedFeed(samplers, kept)


def _fastest(samplers: list[Sampler], budget: int) -> str:
    """The fastest home that fits. To an accelerator the packed home is nearly as fast as the decoded one, and
    twice as fast as the memory of the host; on a CPU it is the slowest."""
    timeline, size = samplers[0].dataset.timeline, frame_bytes(samplers[0].dataset.spec)
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


def _check_that_packed_frames_fit(samplers: list[Sampler]) -> None:
    needed, available = _packed_bytes(samplers), _device_bytes()
    if needed > available:
        raise UsageError(
            f"packed frames need about {needed / 2**30:,.1f} GiB, and the device has "
            f"{available / 2**30:,.1f} GiB for them: choose --feed compressed"
        )


def frame_bytes(spec: Spec) -> int:
    return prod(spec.frame_shape) * np.dtype(spec.frame_dtype).itemsize


def _default_budget() -> int:
    """Half of the memory that this run may use."""
    return host_bytes() // 2


def _device_bytes() -> int:
    """The share of an accelerator's memory that the data may use; on a CPU, the default budget."""
    limit = device_bytes()
    return limit * 6 // 10 if limit else _default_budget()


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
    """The numbers of the frames that these rows need, and the rows with places among these frames."""
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
        kept = min(kept, self._timeline.frame_count)
        self._decoded = (
            self._timeline.decoded()
            if kept == self._timeline.frame_count
            else self._timeline.frames(np.arange(kept))
        )
        self._thread = ThreadPoolExecutor(1, "batches")
        self._ahead: tuple[tuple[int, int], Future] | None = None
        spec = samplers[0].dataset.spec
        per_step = 2 * spec.stack * frame_bytes(spec) * samplers[0].batch * len(samplers)
        self.resident, self.minibatch = (), Join(spec.stack, spec.actions)
        self.steps_at_once = max(1, STREAMED_BYTES // per_step)

    def items(self, first_step: int, count: int):
        wanted = (first_step, count)
        future = self._ahead[1] if self._ahead and self._ahead[0] == wanted else self._begin(*wanted)
        items = future.result()
        following = (first_step + count, count)
        self._ahead = (following, self._begin(*following))
        return items

    def _begin(self, first_step: int, count: int) -> Future:
        return self._thread.submit(self._batches, first_step, count)

    def _batches(self, first_step: int, count: int) -> StreamedBatch:
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
