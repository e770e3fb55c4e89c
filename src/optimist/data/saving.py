"""Copying of a dataset, or a view, into a dataset folder."""

from itertools import pairwise

import numpy as np

from optimist.data.disk.shard_stream import steps_per_shard
from optimist.data.intake import Intake
from optimist.data.joining import Columns, Piece
from optimist.data.next_masks import NEXT
from optimist.data.views import View
from optimist.errors import DataError


def copy_into(intake: Intake, view: View) -> None:
    """Write the steps of a view lane by lane, in parts; the order of time over all lanes is kept."""
    if not len(view):
        raise DataError("there is no transition to save: the view is empty")
    timeline, at_once = view.timeline, steps_per_shard(view.spec)
    lane = np.searchsorted(timeline.lane_starts, view.starts, side="right") - 1  # of each range
    first_ranges = np.flatnonzero(np.diff(lane, prepend=-1))
    times = _times(view) if len(first_ranges) > 1 else None
    borders = [*view.offsets[first_ranges].tolist(), len(view)]
    for number, (start, stop) in enumerate(pairwise(borders)):
        intake.begin_lane(int(timeline.lanes[lane[first_ranges[number]]]))
        for first in range(start, stop, at_once):
            positions = np.arange(first, min(first + at_once, stop))
            intake.extend(_piece(view, positions), positions if times is None else times[positions])
        intake.end_lane(_open_end(view, stop - 1))


def _times(view: View) -> np.ndarray:
    """The place of each step of the view in the order of time over all lanes."""
    order = np.argsort(view.timeline.time[view.steps()], kind="stable")
    times = np.empty_like(order)
    times[order] = np.arange(len(order))
    return times


def _open_end(view: View, position: int) -> np.ndarray | None:
    """The frame after this last step of a lane, if its episode has no end."""
    timeline, (step,) = view.timeline, _steps_at(view, np.array([position]))
    if timeline.terminal[step] or _truncated(view, np.array([step]), np.array([position]))[0]:
        return None
    return timeline.frames(step + timeline.episode_of(step) + 1)


def _steps_at(view: View, positions: np.ndarray) -> np.ndarray:
    ranges = view.ranges_at(positions)
    steps: np.ndarray = view.starts[ranges] + positions - view.offsets[ranges]
    return steps


def _truncated(view: View, steps: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Which of these steps a time limit ended, or the view by a cut. The last episode of a lane may have no
    end, as in the recording."""
    timeline = view.timeline
    is_last = np.isin(positions + 1, view.offsets[1:])
    ends_lane = np.isin(steps + 1, np.append(timeline.lane_starts[1:], len(timeline)))
    return timeline.truncated[steps] | (is_last & ~timeline.terminal[steps] & ~ends_lane)


def _piece(view: View, positions: np.ndarray) -> Piece:
    timeline, steps = view.timeline, _steps_at(view, positions)
    truncated = _truncated(view, steps, positions)
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
        columns[NEXT] = timeline.allowed_after(steps)  # the row after a cut is not saved
    frame = steps + timeline.episode_of(steps)
    ended = np.flatnonzero(columns["terminal"] | truncated)
    return Piece(timeline.frames(np.insert(frame, ended + 1, frame[ended] + 1)), columns)
