"""The newest steps of a recording, kept in memory until there are enough for a shard."""

import numpy as np

from optimist.data.rules.checks import ACCEPTED
from optimist.data.rules.joining import at_ends
from optimist.data.transition import NEXT, Columns, Spec
from optimist.errors import DataError


class DepartedError(DataError):
    """A step's observation is not the next observation of the step before it."""


class Buffer:
    """Up to `rows` steps of every lane, in time order."""

    def __init__(self, spec: Spec, lanes: int, rows: int):
        self.spec, self.lanes, self.rows = spec, lanes, rows
        self.filled = 0
        shape = (rows, lanes)
        # One more row: the next observation of the newest step, with which the next step must begin.
        self._observation = np.empty((rows + 1, lanes, *spec.frame_shape), spec.frame_dtype)
        self._closing: list[np.ndarray] = []  # the final frames of episodes, row by row
        self._action = np.empty((*shape, *spec.action_shape), spec.action_dtype)
        self._reward = np.empty(shape, np.float32)
        self._terminal = np.empty(shape, bool)
        self._truncated = np.empty(shape, bool)
        self._masks: np.ndarray | None = None  # (2, rows, lanes, bytes): of each state, and of the next one
        self._goes_on = np.zeros(lanes, bool)

    @property
    def full(self) -> bool:
        return self.filled == self.rows

    @property
    def bytes(self) -> int:
        """The memory of its frames."""
        return self._observation.nbytes

    def put(
        self,
        observation,
        action,
        reward,
        terminal,
        truncated,
        next_observation,
        next_allowed=None,
        allowed=None,
    ) -> None:
        spec, row = self.spec, self.filled
        frame = (self.lanes, *spec.frame_shape)
        observation = checked("observation", observation, frame, spec.frame_dtype)
        action = checked("action", action, (self.lanes, *spec.action_shape), spec.action_dtype)
        reward = checked("reward", reward, (self.lanes,), "float32")
        terminal = checked("terminal", terminal, (self.lanes,), "bool")
        truncated = checked("truncated", truncated, (self.lanes,), "bool")
        next_observation = checked("next_observation", next_observation, frame, spec.frame_dtype)
        if spec.outside(action).any():
            known = (
                f"0 to {spec.actions - 1}" if spec.discrete else f"{spec.action_low} to {spec.action_high}"
            )
            raise DataError(f"action {action.tolist()}: the spec has actions {known}; correct one of them")
        self._check_continuity(observation)
        if allowed is not None:
            self._put_masks(action, allowed, next_allowed)
        begins, ended = ~self._goes_on, terminal | truncated
        if begins.any():
            self._observation[row, begins] = observation[begins]
        self._action[row], self._reward[row] = action, reward
        self._terminal[row], self._truncated[row] = terminal, truncated
        if ended.any():
            self._closing.append(next_observation[ended])
        self._observation[row + 1] = next_observation
        self._goes_on = ~ended
        self.filled += 1

    def _put_masks(self, action: np.ndarray, allowed, next_allowed) -> None:
        spec, shape = self.spec, (self.lanes, self.spec.actions)
        allowed = checked("allowed", allowed, shape, "bool")
        after = checked(
            "next_allowed", np.zeros(shape, bool) if next_allowed is None else next_allowed, shape, "bool"
        )
        refused = ~allowed[np.arange(self.lanes), action]
        if refused.any():
            lane = int(refused.argmax())
            raise DataError(
                f"lane {lane}: its mask does not allow the action {action[lane]}; correct one of them"
            )
        if self._masks is None:
            self._masks = np.empty((2, self.rows, self.lanes, spec.mask_bytes), np.uint8)
        self._masks[:, self.filled] = np.packbits([allowed, after], axis=-1)

    def _check_continuity(self, observation: np.ndarray) -> None:
        """Raise DepartedError if a step does not begin with the last one's next observation: an episode's
        frames are stored once."""
        led_to = self._observation[self.filled]
        differs = (_words(observation) != _words(led_to)).any(axis=1) & self._goes_on
        for lane in np.flatnonzero(differs):
            if not np.array_equal(observation[lane], led_to[lane]):  # 0.0 and -0.0 differ in bytes
                raise DepartedError(
                    f"lane {lane}: the observation is not the next_observation given a step before; "
                    "pass terminal or truncated where an episode ends"
                )

    def steps(self, first_lane: int, first_time: int) -> Columns:
        """The columns of a steps file, sorted by lane and then by time."""
        shape = (self.filled, self.lanes)
        time = first_time + np.arange(self.filled * self.lanes).reshape(shape)
        lane = np.broadcast_to(np.arange(first_lane, first_lane + self.lanes, dtype=np.int32), shape)
        columns: Columns = {
            "lane": lane,
            "time": time,
            "action": self._action,
            "reward": self._reward,
            "terminal": self._terminal,
            "truncated": self._truncated,
        }
        steps = {name: _lane_by_lane(column[: self.filled]) for name, column in columns.items()}
        if self._masks is None:
            return steps
        allowed, after = (_lane_by_lane(masks[: self.filled]) for masks in self._masks)
        last = np.arange(self.lanes) * self.filled + self.filled - 1
        return at_ends({**steps, "allowed": allowed, NEXT: after}, last)

    def frames(self) -> np.ndarray:
        """The frames of a frames file, lane by lane, with the final frame of each episode and each lane."""
        ended = self._ended()
        closes = ended.copy()
        closes[-1] = True
        after = np.cumsum(closes.T).reshape(closes.T.shape).T  # the number of final frames up to this step
        place = np.arange(closes.size).reshape(self.lanes, self.filled).T + after - closes
        frames = np.empty((closes.size + closes.sum(), *self.spec.frame_shape), self.spec.frame_dtype)
        for lane in range(self.lanes):  # one by one: no second copy of all frames is made
            frames[place[:, lane]] = self._observation[: self.filled, lane]
        frames[place[-1] + 1] = self._observation[self.filled]
        if self._closing:
            frames[place[ended] + 1] = np.concatenate(self._closing)
        return frames

    def _ended(self) -> np.ndarray:
        return self._terminal[: self.filled] | self._truncated[: self.filled]

    def continue_from(self, other: "Buffer") -> None:
        """Empty this buffer; it continues after the last steps of the other."""
        self._observation[0] = other._observation[other.filled]
        self._goes_on = other._goes_on
        self._closing, self.filled = [], 0

    def lead_to(self, frames: np.ndarray, goes_on: np.ndarray) -> None:
        """Begin after steps with these next observations; `goes_on` marks lanes whose episode continues."""
        self._observation[0], self._goes_on = frames, goes_on

    def clear(self) -> None:
        self.continue_from(self)


def _words(frames: np.ndarray) -> np.ndarray:
    """The bytes of each frame, as 64-bit words where possible: these compare much faster."""
    flat = np.ascontiguousarray(frames).reshape(len(frames), -1).view(np.uint8)
    return flat.view(np.uint64) if flat.shape[1] % 8 == 0 else flat


def _lane_by_lane(column: np.ndarray) -> np.ndarray:
    rows, lanes = column.shape[:2]
    return column.swapaxes(0, 1).reshape(rows * lanes, *column.shape[2:])


def checked(name: str, value, shape: tuple[int, ...], dtype) -> np.ndarray:
    """The value as an array of this shape and type; DataError if it does not fit."""
    array, dtype = np.asarray(value), np.dtype(dtype)
    if array.shape != shape:
        raise DataError(f"{name} has shape {array.shape} instead of {shape}; the first axis counts the lanes")
    if array.dtype.kind not in ACCEPTED[dtype.kind]:
        raise DataError(f"{name} has type {array.dtype} instead of {dtype}; convert it first")
    array = array.astype(dtype, copy=False)
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise DataError(f"{name} holds NaN or infinity; find its cause before you record it")
    return array
