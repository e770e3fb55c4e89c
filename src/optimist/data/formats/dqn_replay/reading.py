"""Import of DQN Replay logs into a dataset, in one pass over the frames, window by window.

A window is added to the dataset when its files have been read to their ends without an error. An interrupted
import continues there, and the result has the same bytes.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from optimist.data.disk import manifest as manifests
from optimist.data.disk.files import TEMPORARY, remove
from optimist.data.disk.lock import HOLDER, LOCK, writing
from optimist.data.disk.manifest import Manifest
from optimist.data.formats.dqn_replay.log import STACK, Log
from optimist.data.formats.dqn_replay.opening import in_ranges, read_log
from optimist.data.formats.dqn_replay.plan import Plan, plan
from optimist.data.formats.dqn_replay.shards import Progress, Writing
from optimist.data.transition import Spec
from optimist.data.views import episodes_in_words
from optimist.errors import DataError

FORMAT = "dqn-replay"
ENDS = "time-outs are among the terminals: these logs do not tell them apart"


@dataclass(frozen=True)
class ReadOptions:
    """Options of an import."""

    environment: Annotated[str | None, "the game, such as atari/Breakout; none: from the address"] = None
    actions_count: Annotated[int | None, "number of actions; none: the game's own"] = None
    shard_steps: Annotated[int, "steps per file of the dataset"] = 16384

    def __post_init__(self) -> None:
        if self.actions_count is not None and self.actions_count < 1:
            raise DataError(f"{self.actions_count} actions: give the game's number of actions, at least 1")
        if self.shard_steps < 1:
            raise DataError(f"shards of {self.shard_steps} steps: give at least 1")


@dataclass(frozen=True)
class Imported:
    """What was imported, and what was left out."""

    steps: int
    episodes: int
    lanes: int
    windows: int
    missing_windows: tuple[int, ...]
    padding_dropped: int
    steps_without_successor: int  # dropped: the last of each stretch of windows
    steps_with_unknown_past: int  # kept: earlier frames in their stacks are black
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        stretches = f" in {self.lanes} stretches" if self.lanes > 1 else ""
        counted = f"{self.steps:,} steps in {episodes_in_words(self.episodes)}"
        said = [
            f"{counted} from {self.windows} windows{stretches}",
            f"left out: {self.padding_dropped:,} padding entries, {self.steps_without_successor} last steps",
        ]
        if self.steps_with_unknown_past:
            said.append(
                f"{self.steps_with_unknown_past} steps after a gap have black frames in place of unknown ones"
            )
        return [*said, *(f"note: {note}" for note in self.notes)]


def read(
    address: str | Path,
    out: str | Path,
    options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
    progress: Progress | None = None,
) -> Imported:
    """Convert a run's logs, on disk or at an fsspec address, to a dataset folder; the same call continues
    after an interruption. The default of `actions_count` is the largest action in the logs plus one."""
    log, folder = read_log(address), Path(out)
    if log.faults:
        raise DataError(log.faults[0] + (f" ({len(log.faults)} problems)" if log.faults[1:] else ""))
    made = plan(log, options.actions_count)
    if not made.steps:
        raise DataError(f"{log.folder.address} holds no step whose successor is known; nothing to import")
    actions = options.actions_count or made.largest_action + 1
    spec = Spec((*log.dumps[0].frame, 1), "uint8", actions=actions, stack=STACK)
    _refuse_other_files(folder)
    with writing(folder):
        manifest = _manifest_to_extend(folder, Manifest(spec, _provenance(log, made, options)))
        try:
            Writing(log, made, folder, manifest, options.shard_steps).run(progress)
        except DataError:
            _remove_leftovers(folder, manifest)
            raise
    return Imported(
        steps=manifest.steps,
        episodes=manifest.episodes,
        lanes=len(made.lanes),
        windows=len(log.dumps),
        missing_windows=tuple(log.missing),
        padding_dropped=made.padding,
        steps_without_successor=made.without_successor,
        steps_with_unknown_past=made.with_unknown_past,
        notes=tuple(made.notes),
    )


def _provenance(log: Log, made: Plan, options: ReadOptions) -> dict:
    return {
        "environment": options.environment or "",
        "format": FORMAT,
        "source": log.label,
        "files": {"count": len(log.sizes), "bytes": sum(log.sizes.values()), "sha256": log.fingerprint},
        "capacity": log.dumps[0].capacity,
        "windows": in_ranges([dump.window for dump in log.dumps]),
        "missing_windows": in_ranges(log.missing),
        "rewards": "clipped" if made.largest_reward <= 1 else f"as found, up to {made.largest_reward:g}",
        "ends": ENDS,
        "final_observations": "black: they were not logged",
        "notes": list(made.notes),
        "shard_steps": options.shard_steps,
        "windows_imported": 0,
        "unfinished": "the import was interrupted; give the same command again",
    }


def _refuse_other_files(folder: Path) -> None:
    """Raise DataError for a folder with other files, before a lock file is made in it."""
    if not folder.is_dir() or os.path.lexists(folder / manifests.NAME):
        return
    ours = (TEMPORARY, LOCK, HOLDER)
    others = sorted(path.name for path in folder.iterdir() if not path.name.endswith(ours))
    if others:
        raise DataError(f"{folder} holds {others[0]}, not a dataset; import into a new folder")


def _manifest_to_extend(folder: Path, wanted: Manifest) -> Manifest:
    """The manifest of an interrupted import of the same files, or a new one in an empty folder."""
    if not os.path.lexists(folder / manifests.NAME):
        wanted.write(folder)
        return wanted
    found = manifests.read(folder)
    if found.provenance.get("format") != FORMAT:
        raise DataError(f"{folder} holds another dataset; import into another folder")
    windows = found.provenance.get("windows_imported")
    if type(windows) is not int or windows < 0:
        raise DataError(f"{folder} does not say how many windows were imported; remove it and import again")
    if found.spec != wanted.spec:
        actions = f"{found.spec.actions} actions, not {wanted.spec.actions}"
        raise DataError(f"{folder} holds an import with {actions}; import into another folder")
    before, now = found.provenance, wanted.provenance
    passing = ("windows_imported", "unfinished", "notes")  # these change during an import or between versions
    for name in {**now, **before}:
        if name not in passing and before.get(name) != now.get(name):
            raise DataError(
                f"{folder} holds an import of {before.get('source')} whose {name} was {before.get(name)}, "
                f"not {now.get(name)}; import into another folder"
            )
    _remove_leftovers(folder, found)
    return found


def _remove_leftovers(folder: Path, manifest: Manifest) -> None:
    """Remove the shards of the window that an interrupted import had not completed."""
    shard = re.compile(r"(steps|frames)-(\d{6,})\.arrow")
    matches = [match for path in folder.iterdir() if (match := shard.fullmatch(path.name))]
    unnamed = [folder / match[0] for match in matches if int(match[2]) >= len(manifest.shards)]
    remove(*folder.glob(f"*{TEMPORARY}"), *unnamed)
