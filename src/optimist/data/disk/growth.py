"""Writing of the newest shard of a recording, again and again while it grows."""

import contextlib
from pathlib import Path

import numpy as np

from optimist.data.disk.files import remove
from optimist.data.disk.manifest import Block, Manifest
from optimist.data.disk.shard import write_shard
from optimist.data.transition import OPTIONAL, Columns
from optimist.errors import StorageError


def grown(
    folder: Path,
    manifest: Manifest,
    number: int,
    steps: Columns,
    frames: np.ndarray,
    blocks: tuple[Block, ...],
) -> Manifest:
    """Write a new shard of this number, or a longer version of the last one; the manifest that names it.

    A version has file names of its own, because readers may use the one before, and that one is removed only
    when the manifest no longer names it: a crash at any moment leaves one of them whole."""
    before = manifest.shards[number:]
    version = f"-{len(steps['reward'])}" if before else ""
    shard = write_shard(folder, number, steps, frames, blocks, manifest.spec, version)
    columns = tuple(name for name in OPTIONAL if name in (*manifest.columns, *steps))
    found = Manifest(manifest.spec, manifest.provenance, [*manifest.shards[:number], shard], columns)
    found.write(folder)
    with contextlib.suppress(StorageError):  # as on Windows, for a reader; the next recording tries again
        remove(*(folder / file.file for old in before for file in (old.steps, old.frames)))
    return found
