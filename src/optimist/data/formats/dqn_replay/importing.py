"""Public DQN Replay logs become a dataset: in one pass over the frames, whole windows at a time.

The dataset grows by a window when that window's files were read to their ends and found sound, so an import
that was interrupted goes on there, and comes to the same bytes.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from optimist.data.disk import manifest as manifests
from optimist.data.disk.files import TEMPORARY, remove
from optimist.data.disk.lock import HOLDER, LOCK, writing
from optimist.data.disk.manifest import Manifest
from optimist.data.formats.dqn_replay.frames import Progress, Writing
from optimist.data.formats.dqn_replay.layout import STACK, Log
from optimist.data.formats.dqn_replay.log import in_ranges, read_log
from optimist.data.formats.dqn_replay.plan import Plan, plan
from optimist.data.transition import Spec
from optimist.errors import DataError

FORMAT = "dqn-replay"
SHARD_STEPS = 16384
ENDS = "time-outs are among the terminals: these logs do not tell them apart"


@dataclass(frozen=True)
class Imported:
    """What came out of the logs, and what could not be kept."""

    steps: int
    episodes: int
    lanes: int
    windows: int
    missing_windows: tuple[int, ...]
    padding_dropped: int
    steps_without_successor: int  # dropped: the last of each stretch of windows
    steps_with_unknown_past: int  # kept: the frames before them are black instead of what was seen
    notes: tuple[str, ...]


def import_dqn_replay(
    source: str | Path,
    out: str | Path,
    *,
    environment: str = "",
    actions: int | None = None,
    shard_steps: int = SHARD_STEPS,
    progress: Progress | None = None,
) -> Imported:
    """Turn a run's logs, on disk or at an fsspec address, into a dataset folder; the same call goes on
    after an interruption. Without `actions` the largest action in the logs says how many there are."""
    if actions is not None and actions < 1:
        raise DataError(f"{actions} actions: give the game's number of actions, at least 1")
    log = read_log(source)
    if log.faults:
        raise DataError(log.faults[0] + (f" ({len(log.faults)} problems)" if log.faults[1:] else ""))
    made = plan(log, shard_steps, actions)
    if not made.steps:
        raise DataError(f"{log.where.address} holds no step whose successor is known; nothing to import")
    spec = Spec((*log.dumps[0].frame, 1), "uint8", actions=actions or made.largest_action + 1, stack=STACK)
    provenance = _provenance(log, made, environment, shard_steps)
    _refuse_other_files(Path(out))
    with writing(Path(out)):
        manifest = _manifest_to_extend(Path(out), Manifest(spec, provenance))
        try:
            Writing(log, made, Path(out), manifest, shard_steps).run(progress)
        except DataError:
            _remove_leftovers(Path(out), manifest)
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


def _provenance(log: Log, made: Plan, environment: str, shard_steps: int) -> dict:
    windows = in_ranges([dump.window for dump in log.dumps])
    return {
        "environment": environment,
        "format": FORMAT,
        "source": log.label,
        "files": {"count": len(log.sizes), "bytes": sum(log.sizes.values()), "sha256": log.fingerprint},
        "capacity": log.dumps[0].capacity,
        "windows": windows,
        "missing_windows": in_ranges(log.missing),
        "rewards": "clipped" if made.largest_reward <= 1 else f"as found, up to {made.largest_reward:g}",
        "ends": ENDS,
        "final_observations": "black: they were not logged",
        "notes": list(made.notes),
        "shard_steps": shard_steps,
        "windows_imported": 0,
        "unfinished": "the import was interrupted; give the same command again",
    }


def _refuse_other_files(folder: Path) -> None:
    """Before the lock leaves a file of ours in a folder that is none of ours."""
    if not folder.is_dir() or os.path.lexists(folder / manifests.NAME):
        return
    ours = (TEMPORARY, LOCK, HOLDER)
    others = sorted(path.name for path in folder.iterdir() if not path.name.endswith(ours))
    if others:
        raise DataError(f"{folder} holds {others[0]}, not a dataset; import into a new folder")


def _manifest_to_extend(folder: Path, wanted: Manifest) -> Manifest:
    """The manifest of an import of the same files that was interrupted, or a new one in an empty folder."""
    if not os.path.lexists(folder / manifests.NAME):
        wanted.write(folder)
        return wanted
    found = manifests.read(folder)
    windows = found.provenance.get("windows_imported")
    if found.provenance.get("format") == FORMAT and (type(windows) is not int or windows < 0):
        raise DataError(f"{folder} does not say how many windows were imported; remove it and import again")
    if _lasting(found) != _lasting(wanted) or found.spec != wanted.spec:
        raise DataError(f"{folder} holds {_difference(found, wanted)}; import into another folder")
    _remove_leftovers(folder, found)
    return found


def _remove_leftovers(folder: Path, manifest: Manifest) -> None:
    """An import that stopped leaves the shards of the window it was in."""
    shard = re.compile(r"(steps|frames)-(\d{6,})\.arrow")
    matches = [match for path in folder.iterdir() if (match := shard.fullmatch(path.name))]
    unnamed = [folder / match[0] for match in matches if int(match[2]) >= len(manifest.shards)]
    remove(*folder.glob(f"*{TEMPORARY}"), *unnamed)


def _difference(found: Manifest, wanted: Manifest) -> str:
    if found.provenance.get("format") != FORMAT:
        return "another dataset"
    if found.spec != wanted.spec:
        return f"an import with {found.spec.actions} actions, not {wanted.spec.actions}"
    before, now = _lasting(found), _lasting(wanted)
    name = next(name for name in {**now, **before} if before.get(name) != now.get(name))
    return f"an import of {before.get('source')} whose {name} was {before.get(name)}, not {now.get(name)}"


def _lasting(manifest: Manifest) -> dict:
    """What a manifest says about its origin that does not change while windows are added."""
    passing = ("windows_imported", "unfinished")
    return {name: value for name, value in manifest.provenance.items() if name not in passing}
