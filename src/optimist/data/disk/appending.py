"""Steps that are added to a dataset: whether they may be, and the folder that grows by them."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk import manifest as manifests
from optimist.data.disk.files import TEMPORARY, remove
from optimist.data.disk.lock import HOLDER, LOCK, clean_up, writing
from optimist.data.disk.manifest import Manifest
from optimist.data.disk.reader import read_timeline
from optimist.data.disk.shard import write_shard
from optimist.data.timeline import Timeline
from optimist.data.transition import OPTIONAL, Columns, Spec
from optimist.data.views import View
from optimist.errors import DataError, StorageError, in_one_line

FEATURES, ACTION_COLUMNS = "features", "action_columns"  # in the provenance: columns in their order
DOUBTS = "doubts"  # there too: what columns that were left out say against the order of the rows

# In the provenance: the fingerprint of what a folder began with, and those of what was appended, or True.
COPY_OF, APPENDED = "copy_of", "appended"
AT_ONCE = 4096  # frames that are compared together


def appended(provenance: Mapping[str, Any]) -> list[str]:
    """The fingerprints of the datasets whose steps were appended, as far as they are known."""
    fingerprints = provenance.get(APPENDED)
    return fingerprints if isinstance(fingerprints, list) else []


def begun_with(provenance: Mapping[str, Any], source: View | None) -> dict[str, Any]:
    """The provenance of a new folder that begins with steps of this provenance, from this dataset if there is
    one."""
    begun = {name: value for name, value in provenance.items() if name != COPY_OF}
    if APPENDED in begun:
        begun[APPENDED] = True  # which datasets is not known: these steps may be a view
    return {**begun, COPY_OF: source.fingerprint} if source else begun


def check_is_new(folder: Path, manifest: Manifest, source: View) -> None:
    """Raise DataError if these steps were saved here before: a command that is run again doubles them."""
    if source.path and source.path.resolve() == folder.resolve():
        raise DataError(f"{folder} is the log itself, and its steps would be there twice: append others")
    if source.fingerprint in (manifest.provenance.get(COPY_OF), *appended(manifest.provenance)):
        raise DataError(f"{folder} has these steps already: they were appended before; append others")
    if source.recording:  # a part may be appended to what it is a part of
        return
    count = _steps_in(read_timeline(folder, manifest), source.timeline)
    if count == len(source):
        raise DataError(f"{folder} has all of these steps already; append others")
    if count:
        rest = len(source) - count
        raise DataError(
            f"{folder} has {count:,} of these {len(source):,} steps already, because the log grew after they "
            f"were appended: append the others, with --last {rest} (in Python: data.last({rest}))"
        )


def _steps_in(here: Timeline, more: Timeline) -> int:
    """How many steps with which the lanes of a log begin are whole lanes here, one after the other."""
    by_frame: dict[bytes, list[range]] = {}  # the lanes that begin with this frame
    lanes = map(range, here.lane_starts.tolist(), here.lane_stops.tolist())
    for lane, frame in zip(lanes, here.frames(here.frame_of(here.lane_starts)), strict=True):
        by_frame.setdefault(frame.tobytes(), []).append(lane)
    count = 0
    for place, stop in zip(more.lane_starts.tolist(), more.lane_stops.tolist(), strict=True):
        while place < stop:
            first = more.frames(more.frame_of(np.array([place])))
            candidates = [lane for lane in by_frame.get(first.tobytes(), []) if len(lane) <= stop - place]
            same = next((len(lane) for lane in candidates if _alike(here, lane, more, place)), 0)
            if not same:
                break
            count, place = count + same, place + same
    return count


def _alike(here: Timeline, lane: range, more: Timeline, place: int) -> bool:
    """Are all steps of this lane those from a place on in the other timeline?"""
    steps, shift = np.arange(lane.start, lane.stop), place - lane.start
    for name in ("action", "reward", "terminal"):
        if not np.array_equal(here.columns[name][steps], more.columns[name][steps + shift]):
            return False
    return all(
        np.array_equal(here.frames(here.frame_of(part)), more.frames(more.frame_of(part + shift)))
        for part in np.array_split(steps, 1 + len(lane) // AT_ONCE)
    )


def to_extend(
    folder: Path, spec: Spec, provenance: Mapping[str, Any], append: bool, restart: bool
) -> Manifest | None:
    """The manifest of the dataset to append to, or None for a folder to fill; DataError for any other."""
    if not os.path.lexists(folder):
        return None
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; choose another one")
    if not os.path.lexists(folder / manifests.NAME):
        ours = (TEMPORARY, LOCK, HOLDER)
        others = sorted(path.name for path in folder.iterdir() if not path.name.endswith(ours))
        if others:
            raise DataError(f"{folder} holds {in_one_line(others[0])}, not a dataset; choose a new folder")
        return None
    manifest = manifests.read(folder)
    if restart and "unfinished" in manifest.provenance:
        return None
    manifest.check_complete(folder)
    if not append:
        remedy = f"choose a new folder, or append to it: optimist data append NEW --to {folder}"
        raise DataError(f"{folder} holds a dataset already; {remedy}")
    if manifest.spec != spec:
        before, after = vars(manifest.spec), vars(spec)
        name = next(each.name for each in fields(Spec) if before[each.name] != after[each.name])
        raise DataError(
            f"{folder} holds {manifest.spec.in_words()}, which differs from {spec.in_words()}: its {name} is "
            f"{in_one_line(before[name])}, not {in_one_line(after[name])}; choose a new folder, or "
            f"{_remedy(manifest.spec, spec)}"
        )
    for name in (FEATURES, ACTION_COLUMNS):
        columns = (manifest.provenance.get(name), provenance.get(name))
        lists = [each if isinstance(each, list) else [] for each in columns]
        for place, (one, other) in enumerate(zip(*lists, strict=False)):
            if one != other:
                raise DataError(
                    f"{folder} has {in_one_line(one)} where the new log has {in_one_line(other)} (number "
                    f"{place} of the {name.replace('_', ' ')}): import it again with the same columns in the "
                    "same order"
                )
    return manifest


def _remedy(one: Spec, other: Spec) -> str:
    """What makes the second spec the first: names, numbers and bounds of actions may be only those that occur
    in each log."""
    if one.discrete and replace(other, actions=one.actions, action_names=one.action_names) == one:
        names = dict.fromkeys([*one.action_names, *other.action_names])
        listed = ",".join(map(str, names)) if names else max(one.actions, other.actions)
        option = f"--action-names {listed}" if names else f"--actions-count {listed}"
        has_all = len(names) == len(one.action_names) and other.actions <= one.actions
        return f"import {'the new log' if has_all else 'both'} with {option}"
    if replace(other, action_low=one.action_low, action_high=one.action_high) != one:
        return "give the same"
    low, high = np.minimum(one.action_low, other.action_low), np.maximum(one.action_high, other.action_high)
    bounds = [",".join(map(repr, each.tolist())) for each in (low, high)]
    options = f"with --action-low {bounds[0]} --action-high {bounds[1]}"
    has_room = (tuple(low), tuple(high)) == (one.action_low, one.action_high)
    return f"import the new log {options}" if has_room else f"import both {options}, or wider bounds"


class GrowingFolder:
    """The lock and the manifest of a folder, for one writer at a time.

    Shards that are whole stay as they are. Steps after them are one more shard, of which a longer version may
    take the place until it is whole too."""

    def __init__(self, folder: Path, spec: Spec, provenance: dict[str, Any] | None):
        self.folder = folder
        self.lock = writing(folder)
        try:
            is_new = not os.path.lexists(folder / manifests.NAME)  # a broken link counts as a manifest
            manifest = Manifest(spec, {}) if is_new else manifests.read(folder)
            if manifest.spec != spec:
                raise DataError(f"{folder} holds {manifest.spec}, not {spec}; record into another folder")
            if "probability" in manifest.columns:
                raise DataError(
                    f"the steps in {folder} have a probability each, which a recording lacks; record into "
                    "another folder"
                )
            manifest.check_complete(folder)
            clean_up(folder, manifest)  # the leftovers of a crash
            manifest.provenance = {**manifest.provenance, **(provenance or {})}
            manifest.write(folder)
        except BaseException:
            self.lock.release()
            raise
        self.manifest = manifest
        # Do the recorded steps have masks of allowed actions? None if nothing is recorded.
        self._masked = "allowed" in self.manifest.columns if self.manifest.shards else None
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
            remove(*(self.folder / file.file for old in shards[self.whole :] for file in old.files))
