"""A dataset folder that grows while steps are recorded into it."""

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk import manifest as manifests
from optimist.data.disk.files import remove
from optimist.data.disk.lock import clean_up, writing
from optimist.data.disk.manifest import Manifest
from optimist.data.disk.shard import write_shard
from optimist.data.transition import OPTIONAL, Columns, Spec
from optimist.errors import DataError, StorageError, in_one_line


class GrowingFolder:
    """The lock and the manifest of a folder, for one writer at a time.

    Shards that are whole stay as they are. Steps after them are one more shard, of which a longer version may
    take the place until it is whole too."""

    def __init__(self, folder: Path, spec: Spec, provenance: dict[str, Any] | None):
        self.folder = folder
        self._lock = writing(folder)
        try:
            self.manifest = _manifest_to_extend(folder, spec, provenance)
        except BaseException:
            self._lock.release()
            raise
        # Do the recorded steps have masks of allowed actions? None if nothing is recorded.
        self._masked = "allowed" in self.manifest.columns if self.manifest.shards else None
        recorded = (block.lane for shard in self.manifest.shards for block in shard.blocks)
        self.next_lane = 1 + max(recorded, default=-1)
        self.end_shard()

    def check_masks(self, given: bool) -> None:
        """Raise DataError unless this step has a mask exactly if those before it have."""
        if self._masked not in (None, given):
            theirs, ours = ("masks", "none") if self._masked else ("no masks", "one")
            raise DataError(
                f"the steps in {self.folder} have {theirs} of allowed actions, and this step has {ours}; "
                "record into another folder"
            )
        self._masked = given

    def end_shard(self) -> None:
        """Every shard in the manifest is whole."""
        self.whole, self.whole_steps = len(self.manifest.shards), self.manifest.steps

    def reopen_last(self) -> None:
        """The last shard is not whole: a longer version will take its place."""
        self.whole -= 1
        self.whole_steps -= self.manifest.shards[-1].step_rows

    def write(self, steps: Columns, frames: np.ndarray) -> None:
        """Write the shard after the whole ones, or a longer version of it, and the manifest that names it.

        A version has file names of its own, because readers may use the one before, and that one is removed
        only when the manifest no longer names it: a crash at any moment leaves one of them whole."""
        before, shards = self.manifest, self.manifest.shards
        version = f"-{len(steps['reward'])}" if shards[self.whole :] else ""
        shard = write_shard(self.folder, self.whole, steps, frames, before.spec, version)
        columns = tuple(name for name in OPTIONAL if name in (*before.columns, *steps))
        manifest = Manifest(before.spec, before.provenance, [*shards[: self.whole], shard], columns)
        manifest.write(self.folder)
        self.manifest = manifest
        with contextlib.suppress(StorageError):  # as on Windows, for a reader; the next recording tries again
            remove(
                *(self.folder / file.file for old in shards[self.whole :] for file in (old.steps, old.frames))
            )

    @property
    def held(self) -> bool:
        return self._lock.held

    def release(self) -> None:
        self._lock.release()


def _manifest_to_extend(folder: Path, spec: Spec, provenance: dict[str, Any] | None) -> Manifest:
    """The folder's manifest, or a new one; writes it and removes the leftovers of a crash."""
    is_new = not os.path.lexists(folder / manifests.NAME)  # a broken link counts as a manifest
    manifest = Manifest(spec, {}) if is_new else manifests.read(folder)
    if manifest.spec != spec:
        raise DataError(f"{folder} holds {manifest.spec}, not {spec}; record into another folder")
    if "probability" in manifest.columns:
        raise DataError(
            f"the steps in {folder} have a probability each, which a recording lacks; record into another "
            "folder"
        )
    if "unfinished" in manifest.provenance:
        raise DataError(f"{folder} is not complete: {in_one_line(manifest.provenance['unfinished'])}")
    clean_up(folder, manifest)
    manifest.provenance = {**manifest.provenance, **(provenance or {})}
    manifest.write(folder)
    return manifest
