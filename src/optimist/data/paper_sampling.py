"""Sampling as the released code does it: a few buffers at a time instead of the whole log."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optimist.data.sampling import STEPS_PER_BLOCK, Sampler

LOADS = 1 << 63  # the part of the counter that chooses buffers, far from the blocks that choose transitions


@dataclass(frozen=True)
class FiveBuffers(Sampler):
    """Each iteration loads five stretches of a million consecutive transitions, chosen without replacement,
    and each minibatch comes from one of them. The stretch at the end may be short and is chosen as often as
    the others, so that what is in it is seen more often. Kept for comparison; `Sampler` is uniform."""

    updates_per_load: int = 62_500
    buffers: int = 5
    buffer_size: int = 1_000_000

    @cached_property
    def _in_time(self) -> np.ndarray:
        """The positions of the view in the order in which they were experienced."""
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
        chosen = np.array(
            [loaded[load][int(w * len(loaded[load]))] for load, w in zip(loads, which, strict=True)]
        )
        start = chosen * self.buffer_size
        size = np.minimum(self.buffer_size, len(self.dataset) - start)
        return self._in_time[start[:, None] + (where * size[:, None]).astype(np.int64)]


SAMPLERS = {"uniform": Sampler, "five-buffers": FiveBuffers}
