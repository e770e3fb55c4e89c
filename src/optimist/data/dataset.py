"""Datasets: a timeline of recorded play, and the ranges of it that a view is about."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optimist.data import subset
from optimist.data.disk import manifest as manifests
from optimist.data.disk.manifest import Manifest
from optimist.data.disk.reader import read_timeline
from optimist.data.recorder import Recorder
from optimist.data.timeline import Timeline
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line

__all__ = ["Dataset", "Episodes", "Recorder", "Timeline", "open_dataset"]


class Episodes(NamedTuple):
    """The ranges of a view, one entry each; returns are undiscounted sums of unclipped rewards."""

    lengths: np.ndarray
    returns: np.ndarray
    terminal: np.ndarray
    truncated: np.ndarray
    cut: np.ndarray  # its start or its end is missing: in the recording, or in this view
    time: np.ndarray  # when its last step was experienced

    @property
    def complete(self) -> np.ndarray:
        return ~self.cut


@dataclass(frozen=True, eq=False)
class Dataset:
    """Transitions on a timeline, as ranges of steps that each lie inside one episode."""

    spec: Spec
    timeline: Timeline
    starts: np.ndarray
    stops: np.ndarray
    fingerprint: str
    provenance: dict
    path: Path | None = None

    @staticmethod
    def open(path: str | Path) -> "Dataset":
        """The dataset in a folder; its steps are read and checked, its frames stay on disk."""
        folder = Path(path)
        manifest = manifests.read(folder)
        if "unfinished" in manifest.provenance:
            reason = in_one_line(manifest.provenance["unfinished"])
            raise DataError(f"{folder} is not complete: {reason}")
        if not manifest.shards:
            raise DataError(f"{folder} is empty: nothing was recorded yet")
        timeline = read_timeline(folder, manifest)
        return Dataset.whole(manifest.spec, timeline, fingerprint_of(manifest), manifest.provenance, folder)

    @staticmethod
    def whole(
        spec: Spec, timeline: Timeline, fingerprint: str, provenance: dict, path: Path | None = None
    ) -> "Dataset":
        """Every transition of a timeline."""
        starts = timeline.episode_starts
        stops = np.append(starts[1:], len(timeline))
        return Dataset(spec, timeline, starts, stops, fingerprint, provenance, path)

    @staticmethod
    def from_arrays(*arrays, **options) -> "Dataset":
        """A dataset of arrays in memory; see `optimist.data.arrays.from_arrays`."""
        from optimist.data.arrays import from_arrays  # it needs this class

        return from_arrays(*arrays, **options)

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def offsets(self) -> np.ndarray:
        """The position in this view at which each range begins, and the number of transitions."""
        return np.concatenate([[0], np.cumsum(self.stops - self.starts)])

    def ranges_at(self, positions: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.offsets, positions, side="right") - 1

    def steps(self) -> np.ndarray:
        """The timeline steps of this view, in order."""
        return np.repeat(self.starts - self.offsets[:-1], self.stops - self.starts) + np.arange(len(self))

    @cached_property
    def episodes(self) -> Episodes:
        timeline, last = self.timeline, self.stops - 1
        terminal, truncated = timeline.terminal[last], timeline.truncated[last]
        begins = timeline.episode_starts[timeline.episode_of(self.starts)] == self.starts
        borders = np.stack([self.starts, self.stops], axis=1).ravel()
        if len(borders) and borders[-1] == len(timeline):
            borders = borders[:-1]
        return Episodes(
            lengths=self.stops - self.starts,
            returns=np.add.reduceat(timeline.reward, borders, dtype=np.float64)[::2],
            terminal=terminal,
            truncated=truncated,
            cut=~(terminal | truncated) | ~begins,
            time=timeline.time[last],
        )

    def first(self, count: int) -> "Dataset":
        """The earliest transitions of this view."""
        return subset.first(self, count)

    def last(self, count: int) -> "Dataset":
        """The latest transitions of this view."""
        return subset.last(self, count)

    def fraction(self, share: float, seed: int = 0) -> "Dataset":
        """A random share of the trajectories."""
        return subset.fraction(self, share, seed)

    def played_by(self, seed: int) -> "Dataset":
        """What one player did, where several seeds were recorded together."""
        return subset.played_by(self, seed)

    def best(self, share: float) -> "Dataset":
        """The share of the complete episodes with the highest returns."""
        return subset.best(self, share)


def open_dataset(path: str | Path) -> Dataset:
    return Dataset.open(path)


def fingerprint_of(manifest: Manifest) -> str:
    """Tells recordings apart: a hash over what is recorded and the hashes of all files."""
    hashes = [[shard.steps.sha256, shard.frames.sha256] for shard in manifest.shards]
    record = json.dumps([manifest.spec.as_json(), hashes], sort_keys=True)
    return hashlib.sha256(record.encode()).hexdigest()
