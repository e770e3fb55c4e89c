"""The sampling of the paper's released code: from a few buffers at a time instead of the whole log."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optimist.data.sampling import STEPS_PER_BLOCK, Sampler

LOADS = 1 << 63  # counters from here on choose buffers; those below choose transitions


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
        chosen = np.array(
            [loaded[load][int(w * len(loaded[load]))] for load, w in zip(loads, which, strict=True)]
        )
        start = chosen * self.buffer_size
        size = np.minimum(self.buffer_size, len(self.dataset) - start)
        return self._in_time[start[:, None] + (where * size[:, None]).astype(np.int64)]


SAMPLERS = {"uniform": Sampler, "five-buffers": FiveBuffers}
