"""The manifest: the list of a dataset's files with their hashes, and a hash of the list itself."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optimist.data.disk.files import File, plain_bytes, write_whole
from optimist.data.disk.records import json_value, record, sealed, unsealed
from optimist.data.transition import NEXT, OPTIONAL, Spec
from optimist.errors import DataError, in_one_line

NAME = "manifest.json"
FORMAT, VERSION = "optimist-dataset", 1
MOST_LANES, LARGEST_COUNT = 2**31, 2**48  # limits of the columns of a shard and of their sums
LONGEST_NAME = 255  # bytes; the limit of file systems


@dataclass(frozen=True)
class Block:
    """The steps of one lane in one shard; an open block also has the next observation of its last step."""

    lane: int
    steps: int
    frames: int
    ends_open: bool


@dataclass(frozen=True)
class Shard:
    """A time slice of all lanes: one file of steps and one of frames."""

    steps: File
    frames: File
    blocks: tuple[Block, ...]

    @property
    def step_rows(self) -> int:
        return sum(block.steps for block in self.blocks)

    @property
    def frame_rows(self) -> int:
        return sum(block.frames for block in self.blocks)

    @property
    def files(self) -> tuple[File, File]:
        return self.steps, self.frames

    def as_json(self) -> dict:
        blocks = [vars(block) for block in self.blocks]
        return {"steps": vars(self.steps), "frames": vars(self.frames), "blocks": blocks}


@dataclass
class Manifest:
    """The contents of a dataset folder."""

    spec: Spec
    provenance: dict[str, Any]
    shards: list[Shard] = field(default_factory=list)
    columns: tuple[str, ...] = ()  # the optional columns of its steps

    @property
    def steps(self) -> int:
        return sum(block.steps for shard in self.shards for block in shard.blocks)

    @property
    def episodes(self) -> int:
        """Episodes that ended, and those that the end of the recording cut off."""
        closed = sum(b.frames - b.steps - b.ends_open for shard in self.shards for b in shard.blocks)
        last = {block.lane: block for shard in self.shards for block in shard.blocks}
        return closed + sum(block.ends_open for block in last.values())

    @property
    def next_lane(self) -> int:
        """The number of a new lane."""
        return 1 + max((block.lane for shard in self.shards for block in shard.blocks), default=-1)

    @property
    def file_names(self) -> set[str]:
        return {file.file for shard in self.shards for file in shard.files}

    def check_complete(self, folder: Path) -> None:
        """Raise DataError if an import that writes this folder is not done."""
        if "unfinished" in self.provenance:
            raise DataError(f"{folder} is not complete: {in_one_line(self.provenance['unfinished'], 200)}")

    def text(self) -> str:
        """The text of the manifest file, which includes the hash of the rest."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "spec": self.spec.as_json(),
            "provenance": self.provenance,
            "shards": [shard.as_json() for shard in self.shards],
            "steps": self.steps,
            "episodes": self.episodes,
            **({"columns": list(self.columns)} if self.columns else {}),
        }
        try:
            return sealed(content)
        except (TypeError, ValueError) as problem:
            raise DataError(f"the provenance cannot be saved as JSON: {problem}") from problem

    def write(self, folder: Path) -> None:
        write_whole(folder / NAME, self.text().encode())


def read(folder: Path) -> Manifest:
    """The manifest of a folder; DataError if it is missing or damaged."""
    path = folder / NAME
    try:
        text = plain_bytes(path).decode()
        content = json_value(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise DataError(f"{path} is not the manifest of an {FORMAT}")
        if content.get("version") != VERSION:
            version = in_one_line(content.get("version"))
            raise DataError(f"{folder} has version {version}; this optimist reads version {VERSION}: upgrade")
        content = unsealed(text)
        manifest = record(Manifest, content)
        _check(manifest)
        if (content.get("steps"), content.get("episodes")) != (manifest.steps, manifest.episodes):
            raise ValueError("its totals differ from its shards")
        return manifest
    except (FileNotFoundError, NotADirectoryError):
        problem = "has no manifest.json (is it a dataset?)" if folder.exists() else "does not exist"
        remedy = "check the path, or make a dataset with `optimist collect` or `optimist data import`"
        raise DataError(f"{folder} {problem}; {remedy}") from None
    except OSError as problem:
        raise DataError(f"{path} cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise DataError(f"{path} is damaged ({in_one_line(problem)}); restore it from a copy") from None


def spec_from(value: Any) -> Spec:
    """The spec in a record from a file; DataError if it is none."""
    try:
        return record(Spec, value)
    except ValueError as problem:
        raise DataError(f"the spec is malformed ({in_one_line(problem)}); restore it from a copy") from None


def _check(manifest: Manifest) -> None:
    """Raise ValueError for what no manifest says, and DataError for a file that it must not name."""
    columns = manifest.columns
    if columns != tuple(name for name in OPTIONAL if name in columns):
        raise ValueError(f"the columns {columns}")
    if "allowed" in columns and not manifest.spec.discrete:
        raise ValueError("masks over actions that are vectors")
    if NEXT in columns and "allowed" not in columns:
        raise ValueError("masks of next states without those of the states")
    for shard in manifest.shards:
        for file in shard.files:
            _check_file(file)
        for block in shard.blocks:
            counts = (block.lane, block.steps - 1, block.frames - block.steps - block.ends_open)
            if not all(0 <= count < LARGEST_COUNT for count in counts) or block.lane >= MOST_LANES:
                raise ValueError(f"a block cannot be {block}")


def _check_file(file: File) -> None:
    name = file.file
    outside = name != os.path.basename(name) or "\\" in name or ".." in name
    if not name or outside or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
        shown = in_one_line(name)
        raise DataError(f"the manifest names {shown}: not a plain file name; do not trust this dataset")
    if file.bytes < 0:
        raise ValueError(f"the size of {name}")
