"""A long log from a short one: hard links repeat its shards, so it takes no more of the disk."""

import os
from pathlib import Path

from optimist.data.disk.files import File
from optimist.data.disk.manifest import Manifest, Shard, read


def repeated(log: Path, folder: Path, steps: int) -> None:
    """Write a log of about that many steps into an empty folder: the whole of the other, several times."""
    source = read(log)
    copies = max(1, round(steps / source.steps))
    manifest = Manifest(source.spec, {"made": f"by {copies} repetitions"})
    for number, shard in enumerate(source.shards * copies):
        steps, frames = (_linked(log, folder, file, number) for file in (shard.steps, shard.frames))
        manifest.shards.append(Shard(steps, frames, shard.blocks))
    manifest.write(folder)


def _linked(log: Path, folder: Path, file: File, number: int) -> File:
    kind, suffix = file.file.partition("-")[0], Path(file.file).suffix
    name = f"{kind}-{number:06d}{suffix}"
    os.link(log / file.file, folder / name)
    return File(name, file.bytes, file.sha256)
