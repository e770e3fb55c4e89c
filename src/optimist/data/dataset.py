"""Datasets: recorded transitions, opened from a folder or made from arrays."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optimist.data import arrays
from optimist.data.disk import manifest as manifests
from optimist.data.disk.manifest import Manifest
from optimist.data.disk.reader import read_timeline
from optimist.data.sampling import Sampler, transitions
from optimist.data.stacking import decoded_stacks
from optimist.data.timeline import Timeline
from optimist.data.transition import Spec, Transition
from optimist.data.views import View
from optimist.errors import DataError, in_one_line


class Dataset(View):
    """Recorded transitions, or a view of them.

    `len(data)` is their number, `data.batch(32)` samples some, `data.episodes[0]` is the first episode and
    iterates over its transitions, `data.observation(0)` is the input of a policy. `first`, `last`,
    `fraction`, `best` and `played_by` select a part without copying."""

    @staticmethod
    def open(path: str | Path) -> "Dataset":
        """Open a dataset folder: its steps are read and checked, its frames stay on disk."""
        folder = Path(path)
        manifest = manifests.read(folder)
        if "unfinished" in manifest.provenance:
            reason = in_one_line(manifest.provenance["unfinished"])
            raise DataError(f"{folder} is not complete: {reason}")
        if not manifest.shards:
            raise DataError(f"{folder} is empty: record into it first")
        timeline = read_timeline(folder, manifest)
        return Dataset.whole(manifest.spec, timeline, fingerprint_of(manifest), manifest.provenance, folder)

    @staticmethod
    def whole(
        spec: Spec,
        timeline: Timeline,
        fingerprint: str,
        provenance: dict[str, Any],
        path: Path | None = None,
    ) -> "Dataset":
        """Every transition of a timeline."""
        starts = timeline.episode_starts
        stops = np.append(starts[1:], len(timeline))
        return Dataset(spec, timeline, starts, stops, fingerprint, provenance, path)

    @staticmethod
    def from_arrays(
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        terminals: ArrayLike,
        truncated: ArrayLike | None = None,
        *,
        next_observations: ArrayLike | None = None,
        actions_count: int | None = None,
        action_low: ArrayLike | None = None,
        action_high: ArrayLike | None = None,
        stack: int = 1,
        provenance: dict[str, Any] | None = None,
    ) -> "Dataset":
        """A dataset in memory from the steps of one actor, in the order in which they happened.

        Actions that are integers are discrete; there are `actions_count` of them, by default the largest plus
        one. Actions that are floats are vectors; their bounds are those of the data unless given. An
        observation is a stack of `stack` frames.

        With `next_observations` every step is kept. If a step's next observation is not the observation in
        the following row, its episode is truncated there. Without `next_observations` a terminal step gets
        a black final observation, which has no effect because its discount is zero. Where an episode is
        truncated, or the log ends, the successor of the last step is unknown: that step is dropped, and its
        observation becomes the final one of the episode.
        """
        made = arrays.parts(
            observations,
            actions,
            rewards,
            terminals,
            truncated,
            next_observations=next_observations,
            actions_count=actions_count,
            action_low=action_low,
            action_high=action_high,
            stack=stack,
        )
        return Dataset.whole(*made, dict(provenance or {}))

    def batch(
        self,
        size: int = 32,
        *,
        seed: int = 0,
        step: int = 0,
        gamma: float = 0.99,
        n_step: int = 1,
        clip: float | None = None,
    ) -> Transition:
        """The batch that training with this seed draws uniformly at this step: arrays with `size` rows,
        stacked observations. `clip` clips rewards to [-clip, clip]."""
        sampler = Sampler(self, size, gamma, n_step, clip, seed)
        return transitions(sampler, sampler.positions(step, 1)[0], self.timeline.frames)

    def observation(self, position: int) -> np.ndarray:
        """The input of a policy at this step of the dataset: the stack of its frame and earlier ones."""
        at = range(len(self))[position]  # IndexError beyond the last
        rows = Sampler(self).rows(np.array([at]))
        return decoded_stacks(self.timeline.frames, rows.frame, rows.age, self.spec.stack)[0]

    def __repr__(self) -> str:
        episodes, source = self.episodes, self.timeline.source
        kept = source.frame_bytes + source.step_bytes
        size = f"{kept / 2**20:,.1f} MiB" if kept >= 2**20 else f"{kept / 2**10:,.1f} KiB"
        origin = self.provenance.get("environment") or self.provenance.get("source")
        return "\n".join(
            [
                f"Dataset: {len(self):,} steps in {episodes!r}",
                f"  {self.spec.in_words()}",
                f"  {size} {f'in {self.path}' if self.path else 'in memory'}"
                + (f", from {in_one_line(origin)}" if origin else ""),
            ]
        )


def open_dataset(path: str | Path) -> Dataset:
    """Open the dataset in a folder."""
    return Dataset.open(path)


def fingerprint_of(manifest: Manifest) -> str:
    """A hash that identifies a recording: over its spec and the hashes of all its files."""
    hashes = [[shard.steps.sha256, shard.frames.sha256] for shard in manifest.shards]
    record = json.dumps([manifest.spec.as_json(), hashes], sort_keys=True)
    return hashlib.sha256(record.encode()).hexdigest()
