"""Copying of a dataset, or a view, into a dataset folder."""

import numpy as np

from optimist.data.disk.shard_stream import steps_per_shard
from optimist.data.intake import Intake
from optimist.data.joining import Columns, Piece
from optimist.data.views import View
from optimist.errors import DataError


def copy_into(intake: Intake, view: View) -> None:
    """Write the steps of a view lane by lane, in parts; the order of time over all lanes is kept."""
    if not len(view):
        raise DataError("there is no transition to save: the view is empty")
    timeline, steps = view.timeline, view.steps()
    truncated = ends_of(view)
    time = np.empty(len(steps), np.int64)
    time[np.argsort(timeline.time[steps], kind="stable")] = np.arange(len(steps))
    lane = np.searchsorted(timeline.lane_starts, steps, side="right") - 1
    borders = np.append(np.flatnonzero(np.diff(lane, prepend=-1)), len(steps))
    at_once = steps_per_shard(view.spec)
    for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        intake.begin_lane(int(timeline.lanes[lane[start]]))
        for first in range(start, stop, at_once):
            part = slice(first, min(first + at_once, stop))
            intake.extend(_piece(view, steps[part], truncated[part]), time[part])
        last = steps[stop - 1]
        is_open = not (timeline.terminal[last] | truncated[stop - 1])
        frame = last + timeline.episode_of(last) + 1
        intake.end_lane(timeline.frames(frame) if is_open else None)


def ends_of(view: View) -> np.ndarray:
    """Which steps of the view a time limit, or a cut by the view, ended. The last episode of a lane may have
    no end."""
    timeline = view.timeline
    truncated = timeline.truncated[view.steps()]
    lane_stops = np.append(timeline.lane_starts[1:], len(timeline))
    is_cut = ~(timeline.terminal[view.stops - 1] | np.isin(view.stops, lane_stops))
    truncated[view.offsets[1:] - 1] |= is_cut
    return truncated


def _piece(view: View, steps: np.ndarray, truncated: np.ndarray) -> Piece:
    timeline = view.timeline
    columns: Columns = {
        "action": timeline.action[steps],
        "reward": timeline.reward[steps],
        "terminal": timeline.terminal[steps],
        "truncated": truncated,
    }
    if timeline.probability is not None:
        columns["probability"] = timeline.probability[steps]
    if timeline.allowed is not None:
        columns["allowed"] = timeline.allowed.bits[steps]
    frame = steps + timeline.episode_of(steps)
    ended = np.flatnonzero(columns["terminal"] | truncated)
    return Piece(timeline.frames(np.insert(frame, ended + 1, frame[ended] + 1)), columns)
