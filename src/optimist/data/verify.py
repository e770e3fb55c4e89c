"""Checks of a whole dataset folder: one line for each problem."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from optimist.data.disk import manifest as manifests
from optimist.data.disk.files import TEMPORARY, checked_path, hash_of_file
from optimist.data.disk.manifest import Manifest, Shard
from optimist.data.disk.reader import read_timeline, wrong_values
from optimist.data.disk.shard import open_frames, read_steps
from optimist.data.transition import Columns, Spec
from optimist.errors import DataError, some_of


def verify(path: str | Path) -> list[str]:
    """Read every byte of a dataset and return its problems: one line each, with the file and its rows."""
    folder = Path(path)
    try:
        manifest = manifests.read(folder)
    except DataError as problem:
        return [str(problem)]
    if "unfinished" in manifest.provenance:
        return _does_not_open(folder)
    names = {each.name for each in folder.iterdir() if each.name.endswith((".arrow", TEMPORARY))}
    problems = [
        f"{folder / name} is not in the manifest: a leftover of a crash, another file, or the manifest is old"
        for name in sorted(names - manifest.file_names)
    ]
    if (folder / manifests.NAME).read_text(encoding="utf-8") != manifest.text():
        problems.append(
            f"{folder / manifests.NAME} is not written as optimist writes it; restore it from a copy"
        )
    hashes = {file.sha256: file.file for shard in manifest.shards for file in shard.files}

    def wrong(shard: Shard) -> list[str]:
        return _wrong_files(folder, shard, manifest.spec, hashes) or _wrong_rows(folder, shard, manifest)

    # The last one first: a recording that goes on may replace it, and names its successor in a new manifest.
    newest = [problem for shard in manifest.shards[-1:] for problem in wrong(shard)]
    if newest:
        try:
            is_old = manifests.read(folder) != manifest
        except DataError:
            is_old = True
        if is_old:
            return verify(folder)
    problems += [problem for shard in manifest.shards[:-1] for problem in wrong(shard)]
    return problems + newest or _does_not_open(folder)


def _wrong_files(folder: Path, shard: Shard, spec: Spec, hashes: dict[str, str]) -> list[str]:
    """The problems in the bytes of a shard's two files."""
    problems = []
    for file, rows in zip(shard.files, (shard.step_rows, shard.frame_rows), strict=True):
        path, whole = folder / file.file, f"rows 0 to {rows - 1}"
        try:
            digest = hash_of_file(checked_path(folder, file))
        except (DataError, OSError) as problem:
            problems.append(f"{problem} ({whole})")
            continue
        if digest in hashes and digest != file.sha256:
            problems.append(f"{path} ({whole}) holds the contents of {hashes[digest]}")
        elif digest != file.sha256:
            damaged = _damaged_frames(folder, shard, spec) if file is shard.frames else None
            where = f"rows {damaged}" if damaged else f"within {whole}"
            problems.append(f"{path} is damaged ({where}); restore it from a copy")
    return problems


def _damaged_frames(folder: Path, shard: Shard, spec: Spec) -> str | None:
    """The rows that do not decode; None if the frames' checksums find none."""
    damaged = np.zeros(shard.frame_rows, bool)
    try:
        decoder = open_frames(folder, shard.frames, shard.frame_rows, spec)
    except DataError:
        return None
    for row in range(shard.frame_rows):
        try:
            decoder.decode(np.array([row]))
        except DataError:
            damaged[row] = True
    return _some(damaged) if damaged.any() else None


def _wrong_rows(folder: Path, shard: Shard, manifest: Manifest) -> list[str]:
    """The problems in the rows of files whose hashes are right."""
    spec = manifest.spec
    try:
        steps = read_steps(folder, shard.steps, shard.step_rows, spec, manifest.columns)
        frames = open_frames(folder, shard.frames, shard.frame_rows, spec)
        frames.check()
        for start in range(0, shard.frame_rows, frames.rows_at_once):
            frames.decode(np.arange(start, min(start + frames.rows_at_once, shard.frame_rows)))
    except DataError as problem:
        return [str(problem)]
    return [f"{folder / shard.steps.file}: {problem}" for problem in _wrong_values(steps, shard, spec)]


def _wrong_values(steps: Columns, shard: Shard, spec: Spec) -> Iterator[str]:
    counts = np.array([block.steps for block in shard.blocks], np.int64)
    lanes = np.repeat([block.lane for block in shard.blocks], counts)
    last = np.cumsum(counts) - 1
    ended = steps["terminal"] | steps["truncated"]
    closed = np.add.reduceat(ended, last + 1 - counts, dtype=np.int64)
    within = np.diff(lanes) == 0
    wrong = {
        "the lane is not the manifest's": steps["lane"] != lanes,
        "the time does not increase": np.append(False, within & (np.diff(steps["time"]) <= 0)),
        **wrong_values(steps, spec),
    }
    yield from (f"rows {_some(rows)}: {what}" for what, rows in wrong.items() if rows.any())
    for block, episodes, stop in zip(shard.blocks, closed, last, strict=True):
        expected = (block.frames - block.steps - block.ends_open, block.ends_open)
        if expected != (episodes, not ended[stop]):
            yield f"rows {stop + 1 - block.steps} to {stop}: episodes and frames do not match"


def _some(rows: np.ndarray) -> str:
    return some_of([str(number) for number in np.flatnonzero(rows)], 5)


def _does_not_open(folder: Path) -> list[str]:
    try:
        timeline = read_timeline(folder, manifests.read(folder))
    except DataError as problem:
        return [str(problem)]
    backwards = (np.diff(timeline.time) <= 0) & (np.diff(timeline.lane) == 0)
    lanes = np.unique(timeline.lane[1:][backwards])
    return [f"{folder}: the shards of lane {lane} are not in the order of time" for lane in lanes]
