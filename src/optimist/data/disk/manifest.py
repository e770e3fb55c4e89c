"""The manifest: the list of a dataset's files with their hashes, and a hash of the list itself."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from optimist.data.disk.files import File, plain_bytes, write_whole
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line

NAME = "manifest.json"
FORMAT, VERSION = "optimist-dataset", 1
MOST_LANES, LARGEST_COUNT = 2**31, 2**48  # limits of the columns of a shard and of their sums
OPTIONAL_COLUMNS = ("probability", "allowed", "next_allowed")  # of the steps, in this order in the files
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

    def as_json(self) -> dict:
        blocks = [vars(block) for block in self.blocks]
        return {"steps": vars(self.steps), "frames": vars(self.frames), "blocks": blocks}


@dataclass
class Manifest:
    """The contents of a dataset folder."""

    spec: Spec
    provenance: dict
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

    def text(self) -> str:
        """The text of the manifest file, which includes the hash of the rest."""
        record = {
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
            text = signed(record)
            text.encode()  # raises for text that UTF-8 cannot encode
        except (TypeError, ValueError) as problem:
            raise DataError(f"the provenance cannot be saved as JSON: {problem}") from problem
        return text

    def write(self, folder: Path) -> None:
        write_whole(folder / NAME, self.text().encode())


def signed(record: dict) -> str:
    return json.dumps({**record, "sha256": _hash_of(record)}, ensure_ascii=False, allow_nan=False) + "\n"


def _hash_of(record: dict) -> str:
    canonical = json.dumps(record, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def read(folder: Path) -> Manifest:
    """The manifest of a folder; DataError if it is missing or damaged."""
    try:
        record = json.loads(plain_bytes(folder / NAME).decode(), parse_constant=_refused_constant)
    except (FileNotFoundError, NotADirectoryError):
        problem = "has no manifest.json (is it a dataset?)" if folder.exists() else "does not exist"
        remedy = "check the path, or make a dataset with `optimist collect` or `optimist data import`"
        raise DataError(f"{folder} {problem}; {remedy}") from None
    except OSError as problem:
        raise DataError(f"{folder / NAME} cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise DataError(
            f"{folder / NAME} is damaged ({in_one_line(problem)}); restore it from a copy"
        ) from None
    _check_identity(folder, record)
    try:
        return _parsed(record)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        reason = in_one_line(repr(problem))
        raise DataError(f"{folder / NAME} is malformed ({reason}); restore it from a copy") from problem


def _refused_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _check_identity(folder: Path, record) -> None:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"{folder / NAME} is not the manifest of an {FORMAT}")
    if record.get("version") != VERSION:
        found = in_one_line(record.get("version"))
        raise DataError(f"{folder} has version {found}; this optimist reads version {VERSION}: upgrade")
    stated = record.pop("sha256", None)
    try:
        found = _hash_of(record)
    except (ValueError, RecursionError) as problem:
        reason = in_one_line(problem)
        raise DataError(f"{folder / NAME} is damaged ({reason}); restore it from a copy") from problem
    if stated != found:
        raise DataError(f"{folder / NAME} is damaged or edited (its hash differs); restore it from a copy")


def _parsed(record: dict) -> Manifest:
    shards = [
        Shard(_file(s["steps"]), _file(s["frames"]), tuple(_block(block) for block in s["blocks"]))
        for s in record["shards"]
    ]
    columns = tuple(record.get("columns", ()))
    if columns != tuple(name for name in OPTIONAL_COLUMNS if name in columns):
        raise ValueError(f"the columns {columns}")
    spec = Spec.from_json(record["spec"])
    if "allowed" in columns and not spec.discrete:
        raise ValueError("masks over actions that are vectors")
    if "next_allowed" in columns and "allowed" not in columns:
        raise ValueError("masks of next states without those of the states")
    manifest = Manifest(spec, dict(record["provenance"]), shards, columns)
    if (record["steps"], record["episodes"]) != (manifest.steps, manifest.episodes):
        raise ValueError("its totals differ from its shards")
    return manifest


def _file(record: dict) -> File:
    file = File(**record)
    name = file.file
    outside = name != os.path.basename(name) or "\\" in name or ".." in name
    if not name or outside or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
        shown = in_one_line(name)
        raise DataError(f"the manifest names {shown}: not a plain file name; do not trust this dataset")
    if not (isinstance(file.bytes, int) and file.bytes >= 0 and isinstance(file.sha256, str)):
        raise ValueError(f"the size or hash of {name}")
    return file


def _block(record: dict) -> Block:
    block = Block(**record)
    counts = (block.lane, block.steps - 1, block.frames - block.steps - block.ends_open)
    whole = all(type(count) is int and 0 <= count < LARGEST_COUNT for count in counts)
    if not whole or type(block.ends_open) is not bool or block.lane >= MOST_LANES:
        raise ValueError(f"the block {record}")
    return block
