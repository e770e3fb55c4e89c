"""Whether steps can be appended to the dataset in a folder: they must mean the same."""

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk import manifest as manifests
from optimist.data.disk.files import TEMPORARY
from optimist.data.disk.lock import HOLDER, LOCK
from optimist.data.disk.manifest import Manifest
from optimist.data.disk.reader import read_timeline
from optimist.data.timeline import Timeline
from optimist.data.transition import Spec
from optimist.data.views import View
from optimist.errors import DataError, in_one_line

FEATURES, ACTION_COLUMNS = "features", "action_columns"  # in the provenance: columns in their order
DOUBTS = "doubts"  # there too: what columns that were left out say against the order of the rows

# In the provenance: the fingerprint of what a folder began with, and those of what was appended, or True.
COPY_OF, APPENDED = "copy_of", "appended"
AT_ONCE = 4096  # frames that are compared together


def appended(provenance: Mapping[str, Any]) -> list[str]:
    """The fingerprints of the datasets whose steps were appended, as far as they are known."""
    found = provenance.get(APPENDED)
    return found if isinstance(found, list) else []


def begun_with(provenance: Mapping[str, Any], source: View | None) -> dict[str, Any]:
    """The provenance of a new folder that begins with steps of this provenance, from this dataset if there is
    one."""
    begun = {name: value for name, value in provenance.items() if name != COPY_OF}
    if APPENDED in begun:
        begun[APPENDED] = True  # which datasets is not known: these steps may be a view
    return {**begun, COPY_OF: source.fingerprint} if source else begun


def check_is_new(folder: Path, found: Manifest, source: View) -> None:
    """Raise DataError if these steps were saved here before: a command that is run again doubles them."""
    if source.path and source.path.resolve() == folder.resolve():
        raise DataError(f"{folder} is the log itself, and its steps would be there twice: append others")
    if source.fingerprint in (found.provenance.get(COPY_OF), *appended(found.provenance)):
        raise DataError(f"{folder} has these steps already: they were appended before; append others")
    if source.recording:  # a part may be appended to what it is a part of
        return
    if known := _steps_known(read_timeline(folder, found), source.timeline):
        if known == len(source):
            raise DataError(f"{folder} has all of these steps already; append others")
        rest = len(source) - known
        raise DataError(
            f"{folder} has {known:,} of these {len(source):,} steps already, because the log grew after they "
            f"were appended: append the others, with --last {rest} (in Python: data.last({rest}))"
        )


def _steps_known(here: Timeline, more: Timeline) -> int:
    """How many steps with which the lanes of a log begin are whole lanes here, one after the other."""
    by_frame: dict[bytes, list[tuple[int, int]]] = {}
    for start, stop, frame in zip(*_lanes(here), _frames(here, here.lane_starts), strict=True):
        by_frame.setdefault(frame.tobytes(), []).append((start, stop))
    known = 0
    for place, stop in zip(*_lanes(more), strict=True):
        while place < stop:
            lanes = by_frame.get(_frames(more, np.array([place])).tobytes(), [])
            same = (last - first for first, last in lanes if _alike(here, first, last, more, place, stop))
            if not (count := next(same, 0)):
                break
            known, place = known + count, place + count
    return known


def _lanes(timeline: Timeline) -> tuple[list[int], list[int]]:
    starts = timeline.lane_starts.tolist()
    return starts, [*starts[1:], len(timeline)]


def _alike(here: Timeline, first: int, last: int, more: Timeline, place: int, stop: int) -> bool:
    """Are all steps of this lane those from a place on in a lane of the other timeline?"""
    if last - first > stop - place:
        return False
    there = place + last - first
    columns = ((getattr(each, name) for each in (here, more)) for name in ("action", "reward", "terminal"))
    return all(np.array_equal(one[first:last], other[place:there]) for one, other in columns) and all(
        np.array_equal(_frames(here, steps), _frames(more, steps - first + place))
        for steps in np.array_split(np.arange(first, last), 1 + (last - first) // AT_ONCE)
    )


def _frames(timeline: Timeline, steps: np.ndarray) -> np.ndarray:
    return timeline.frames(steps + timeline.episode_of(steps))


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
    found = manifests.read(folder)
    if "unfinished" in found.provenance:
        if restart:
            return None
        raise DataError(f"{folder} is not complete: {in_one_line(found.provenance['unfinished'], 200)}")
    if not append:
        remedy = f"choose a new folder, or append to it: optimist data append NEW --to {folder}"
        raise DataError(f"{folder} holds a dataset already; {remedy}")
    _check_same(folder, found, spec, provenance)
    return found


def _check_same(folder: Path, found: Manifest, spec: Spec, provenance: Mapping[str, Any]) -> None:
    if found.spec != spec:
        raise DataError(
            f"{folder} holds {found.spec.in_words()}, which differs from {spec.in_words()}: "
            f"{_difference(found.spec, spec)}; choose a new folder, or {_remedy(found.spec, spec)}"
        )
    for name in (FEATURES, ACTION_COLUMNS):
        given = (found.provenance.get(name), provenance.get(name))
        before, after = (each if isinstance(each, list) else [] for each in given)
        for place, (one, other) in enumerate(zip(before, after, strict=False)):
            if one != other:
                raise DataError(
                    f"{folder} has {in_one_line(one)} where the new log has {in_one_line(other)} (number "
                    f"{place} of the {name.replace('_', ' ')}): import it again with the same columns in the "
                    "same order"
                )


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
    given = f"with --action-low {bounds[0]} --action-high {bounds[1]}"
    has_room = (tuple(low), tuple(high)) == (one.action_low, one.action_high)
    return f"import the new log {given}" if has_room else f"import both {given}, or wider bounds"


def _difference(one: Spec, other: Spec) -> str:
    """The first field in which two specs differ."""
    name = next(
        field.name for field in fields(Spec) if getattr(one, field.name) != getattr(other, field.name)
    )
    return f"its {name} is {in_one_line(getattr(one, name))}, not {in_one_line(getattr(other, name))}"
