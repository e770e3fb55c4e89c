"""The newest steps of a recording, checked and kept in memory until there are enough for a shard."""

import numpy as np

from optimist.data.shard import Steps
from optimist.data.transition import Spec
from optimist.errors import DataError


class Buffer:
    """Up to `rows` steps of every lane, in the order in which they were experienced."""

    def __init__(self, spec: Spec, lanes: int, rows: int):
        self.spec, self.lanes, self.rows = spec, lanes, rows
        self.filled = 0
        shape = (rows, lanes)
        self._observation = np.empty((*shape, *spec.frame_shape), spec.frame_dtype)
        self._closing = np.empty_like(self._observation)  # only rows where an episode ends are ever touched
        self._action = np.empty((*shape, *spec.action_shape), spec.action_dtype)
        self._reward = np.empty(shape, np.float32)
        self._terminal = np.empty(shape, bool)
        self._truncated = np.empty(shape, bool)
        self._successor = np.empty((lanes, *spec.frame_shape), spec.frame_dtype)
        self._goes_on = np.zeros(lanes, bool)

    @property
    def full(self) -> bool:
        return self.filled == self.rows

    def put(self, observation, action, reward, terminal, truncated, next_observation) -> None:
        spec, row = self.spec, self.filled
        frame = (self.lanes, *spec.frame_shape)
        observation = checked("observation", observation, frame, spec.frame_dtype)
        action = checked("action", action, (self.lanes, *spec.action_shape), spec.action_dtype)
        reward = checked("reward", reward, (self.lanes,), "float32")
        terminal = checked("terminal", terminal, (self.lanes,), "bool")
        truncated = checked("truncated", truncated, (self.lanes,), "bool")
        next_observation = checked("next_observation", next_observation, frame, spec.frame_dtype)
        if spec.discrete and not (action.min() >= 0 and action.max() < spec.actions):
            raise DataError(f"action {action.tolist()}: the spec has actions 0 to {spec.actions - 1}")
        self._check_continuity(observation)
        self._observation[row], self._action[row], self._reward[row] = observation, action, reward
        self._terminal[row], self._truncated[row] = terminal, truncated
        self._goes_on = ~(terminal | truncated)
        self._closing[row, ~self._goes_on] = next_observation[~self._goes_on]
        self._successor = next_observation.copy()
        self.filled += 1

    def _check_continuity(self, observation: np.ndarray) -> None:
        """An episode's frames are stored once, so a step must begin where the last one led."""
        for lane in np.flatnonzero(self._goes_on):
            if not np.array_equal(observation[lane], self._successor[lane]):
                raise DataError(
                    f"lane {lane}: the observation is not the next_observation given a step before; "
                    "say terminal or truncated where an episode ends"
                )

    def steps(self, first_lane: int, first_time: int) -> Steps:
        """The columns of a steps file, sorted by lane and then by time."""
        shape = (self.filled, self.lanes)
        time = first_time + np.arange(self.filled * self.lanes).reshape(shape)
        lane = np.broadcast_to(np.arange(first_lane, first_lane + self.lanes, dtype=np.int32), shape)
        columns = (lane, time, self._action, self._reward, self._terminal, self._truncated)
        return Steps(*(_lane_by_lane(column[: self.filled]) for column in columns))

    def frames(self) -> np.ndarray:
        """The observations of every lane, with each episode's final one, and each lane's last, in place."""
        closes = self._terminal[: self.filled] | self._truncated[: self.filled]
        closes[-1] = True
        closes = _lane_by_lane(closes)
        frame_of_step = np.arange(closes.size) + np.cumsum(closes) - closes
        frames = np.empty((closes.size + closes.sum(), *self.spec.frame_shape), self.spec.frame_dtype)
        frames[frame_of_step] = _lane_by_lane(self._observation[: self.filled])
        self._closing[self.filled - 1] = self._successor
        frames[frame_of_step[closes] + 1] = self._closing[: self.filled].swapaxes(0, 1)[
            closes.reshape(self.lanes, self.filled)
        ]
        return frames

    def episodes_ended(self) -> np.ndarray:
        """How many episodes ended in each lane."""
        return (self._terminal[: self.filled] | self._truncated[: self.filled]).sum(axis=0)

    def ends_open(self) -> np.ndarray:
        """Which lanes are in the middle of an episode."""
        return self._goes_on

    def clear(self) -> None:
        self.filled = 0


def _lane_by_lane(column: np.ndarray) -> np.ndarray:
    rows, lanes = column.shape[:2]
    return column.swapaxes(0, 1).reshape(rows * lanes, *column.shape[2:])


def checked(name: str, value, shape: tuple[int, ...], dtype) -> np.ndarray:
    """The value as an array of this shape and type; only changes of type that lose nothing are made."""
    array, dtype = np.asarray(value), np.dtype(dtype)
    if array.shape != shape:
        raise DataError(f"{name} has shape {array.shape} instead of {shape}; the first axis counts the lanes")
    if array.dtype.kind not in _ACCEPTED[dtype.kind]:
        raise DataError(f"{name} has type {array.dtype} instead of {dtype}; convert it first")
    array = array.astype(dtype, copy=False)
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise DataError(f"{name} holds NaN or infinity; look at what produced it before recording it")
    return array


_ACCEPTED = {"f": "fiu", "i": "iu", "b": "b", "u": "u"}  # kinds of numbers that fit each kind we store
