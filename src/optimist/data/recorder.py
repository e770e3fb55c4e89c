"""Writes play as it happens: every step of every lane, in shards that survive a crash."""

from pathlib import Path

from optimist.data import manifest as manifests
from optimist.data.buffer import Buffer
from optimist.data.files import TEMPORARY, make_folder, remove, write_whole
from optimist.data.manifest import Block, Manifest, Shard
from optimist.data.shard import frames_content, steps_content
from optimist.data.transition import Spec
from optimist.errors import DataError, StorageError


class Recorder:
    """Appends the play of `lanes` parallel environments to a dataset folder. Recording again into a
    folder adds new lanes, so that a lane is always one stretch of uninterrupted experience."""

    def __init__(
        self,
        path: str | Path,
        spec: Spec,
        *,
        lanes: int,
        provenance: dict | None = None,
        shard_steps: int = 16384,
    ):
        if lanes < 1 or shard_steps < 1:
            raise DataError(f"{lanes} lanes in shards of {shard_steps} steps: both must be at least 1")
        self.path, self.spec, self.lanes = Path(path), spec, lanes
        self._manifest = _manifest_to_extend(self.path, spec, provenance)
        self._buffer = Buffer(spec, lanes, rows=max(1, shard_steps // lanes))
        self._added = False
        self._begin_after_what_is_there()

    def _begin_after_what_is_there(self) -> None:
        self._flushed = self._manifest.steps
        lanes = [block.lane for shard in self._manifest.shards for block in shard.blocks]
        self._first_lane = 1 + max(lanes, default=-1)

    @property
    def steps(self) -> int:
        """All steps so far, those of earlier sessions and those not yet flushed included."""
        return self._flushed + self._buffer.filled * self.lanes

    def add(self, observation, action, reward, terminal, truncated, next_observation) -> None:
        """Record one step of every lane; `next_observation` is its true successor, also where it ended."""
        if self._buffer.full:  # the disk refused it last time
            self.flush()
        self._buffer.put(observation, action, reward, terminal, truncated, next_observation)
        self._added = True
        if self._buffer.full:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory as a shard; afterwards a crash cannot lose it."""
        if not self._buffer.filled:
            return
        number = len(self._manifest.shards)
        steps = self._buffer.steps(self._first_lane, first_time=self._flushed)
        steps_file = self.path / f"steps-{number:06d}.arrow"
        frames_file = self.path / f"frames-{number:06d}.arrow"
        shard = Shard(
            steps=write_whole(steps_file, steps_content(steps, self.spec)),
            frames=write_whole(frames_file, frames_content(self._buffer.frames(), self.spec)),
            blocks=self._blocks(),
        )
        grown = Manifest(self.spec, self._manifest.provenance, [*self._manifest.shards, shard])
        grown.write(self.path)
        self._manifest = grown
        self._flushed = self.steps
        self._buffer.clear()

    def _blocks(self) -> tuple[Block, ...]:
        steps = self._buffer.filled
        ended, ends_open = self._buffer.episodes_ended().tolist(), self._buffer.ends_open().tolist()
        return tuple(
            Block(self._first_lane + lane, steps, frames=steps + closed + is_open, ends_open=is_open)
            for lane, (closed, is_open) in enumerate(zip(ended, ends_open, strict=True))
        )

    def truncate(self, steps: int) -> int:
        """Drop the shards that reach beyond the first `steps` steps, and say how many steps are left.
        A collection that goes back to a checkpoint flushes when it saves, so that it loses none."""
        if self._added:
            raise DataError("truncate a recording before adding to it, not after")
        while self._manifest.steps > steps:
            dropped = self._manifest.shards.pop()
            # The manifest first: a crash in between leaves files that the next Recorder cleans up.
            self._manifest.write(self.path)
            remove(self.path / dropped.steps.file, self.path / dropped.frames.file)
        self._begin_after_what_is_there()
        return self.steps

    def close(self) -> None:
        self.flush()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind, problem, trace) -> None:
        if not isinstance(problem, StorageError):
            self.close()


def _manifest_to_extend(folder: Path, spec: Spec, provenance: dict | None) -> Manifest:
    """The folder's manifest, or a new one, written, with the leftovers of a crash removed."""
    make_folder(folder)
    is_new = not (folder / manifests.NAME).exists()
    manifest = Manifest(spec, {}) if is_new else manifests.read(folder)
    if manifest.spec != spec:
        raise DataError(f"{folder} holds {manifest.spec}, not {spec}; record into another folder")
    _clean_up(folder, manifest)
    manifest.provenance = {**manifest.provenance, **(provenance or {})}
    manifest.write(folder)
    return manifest


def _clean_up(folder: Path, manifest: Manifest) -> None:
    """A crash leaves temporaries, or one shard that the manifest does not name yet; anything else is a
    sign of an old manifest, and recording over those files would destroy them."""
    remove(*folder.glob(f"*{TEMPORARY}"))
    listed = {file.file for shard in manifest.shards for file in (shard.steps, shard.frames)}
    unfinished = {f"{kind}-{len(manifest.shards):06d}.arrow" for kind in ("steps", "frames")}
    unlisted = {path.name for path in folder.glob("*-*.arrow")} - listed
    if unlisted - unfinished:
        raise DataError(
            f"{folder} holds {min(unlisted - unfinished)}, which its manifest does not name; "
            "the manifest is old: restore it, or move the file away"
        )
    remove(*(folder / name for name in unlisted))


def discard(folder: Path) -> None:
    """Remove a recording and nothing else: the manifest, the shards it names, and leftovers."""
    remove(folder / manifests.NAME, *folder.glob("steps-*.arrow"), *folder.glob("frames-*.arrow"))
    remove(*folder.glob(f"*{TEMPORARY}"))
