"""Removal of what a crash leaves in a dataset folder, and of a whole dataset."""

import re
from pathlib import Path

from optimist.data.disk import manifest as manifests
from optimist.data.disk.files import TEMPORARY, remove
from optimist.data.disk.lock import writing
from optimist.data.disk.manifest import Manifest
from optimist.errors import DataError

APPENDING = ".appending"  # there while shards are written that the manifest will name all at once
_SHARD = re.compile(r"(?:steps|frames)-(\d{6,})(-\d+)?\.arrow")  # its number, and its version if it grew


def clean_up(folder: Path, manifest: Manifest) -> None:
    """Remove the leftovers of a crash: temporaries, other versions of shards in the manifest, and the shard
    after the last one there, or all shards after it if an append was interrupted. Other unlisted shards mean
    that the manifest is old; DataError, because recording would overwrite them."""
    remove(*folder.glob(f"*{TEMPORARY}"))
    listed = {file.file for shard in manifest.shards for file in (shard.steps, shard.frames)}
    unlisted = {path.name for path in folder.glob("*-*.arrow")} - listed
    newer = sorted(name for name in unlisted if not _is_left_over(folder, manifest, name))
    if newer:
        raise DataError(
            f"{folder} holds {newer[0]}, which its manifest does not name; "
            "the manifest is old: restore it, or move the file away"
        )
    remove(*(folder / name for name in unlisted), folder / APPENDING)


def _is_left_over(folder: Path, manifest: Manifest, name: str) -> bool:
    """Does a crash leave a file of this name, which the manifest does not list?"""
    match = _SHARD.fullmatch(name)
    if not match:
        return False
    number, version, following = int(match[1]), match[2], len(manifest.shards)
    if number < following:  # if the listed version is not there, this one took its place
        shard = manifest.shards[number]
        return all((folder / file.file).exists() for file in (shard.steps, shard.frames))
    return not version and (number == following or (folder / APPENDING).exists())


def discard(folder: Path) -> None:
    """Remove a recording and nothing else: the manifest, the shards, and temporaries."""
    with writing(folder):
        discard_held(folder)


def discard_held(folder: Path) -> None:
    """The same for a folder whose lock is held."""
    remove(folder / manifests.NAME, *folder.glob("steps-*.arrow"), *folder.glob("frames-*.arrow"))
    remove(*folder.glob(f"*{TEMPORARY}"), folder / APPENDING)
