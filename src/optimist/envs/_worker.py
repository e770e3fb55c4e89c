"""A worker process that plays some lanes of an environment; `_workers` starts it as `python -m`.

All workers of a group read their orders, one byte each, from the same pipe, and answer with one byte. Actions
and results are in memory that is shared with the parent process.
"""

import base64
import json
import mmap
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from optimist.data.transition import Spec
from optimist.envs._lanes import as_array, from_array
from optimist.envs._registry import make_lanes
from optimist.errors import UsageError

STEP, RESET, LISTEN = b"s", b"r", b"l"
DONE, FAILED = b".", b"!"
ALIGNMENT = 64  # bytes, where a column begins


class Board(NamedTuple):
    """One vector step in shared memory; every column has a leading axis of lanes."""

    action: np.ndarray
    observation: np.ndarray
    reward: np.ndarray
    terminal: np.ndarray
    truncated: np.ndarray
    next_observation: np.ndarray
    next_allowed: np.ndarray
    allowed: np.ndarray  # in the observation
    masked: np.ndarray  # whether the environment has masks; if not, the two columns above are not written


def board_size(spec: Spec, lanes: int) -> int:
    return sum(_padded(lanes, *column) for column in _columns(spec))


def board(spec: Spec, lanes: int, memory: Any) -> Board:
    arrays, begin = [], 0
    for shape, dtype in _columns(spec):
        arrays.append(np.ndarray((lanes, *shape), dtype, memory, begin))
        begin += _padded(lanes, shape, dtype)
    return Board(*arrays)


def _columns(spec: Spec) -> list[tuple[tuple[int, ...], np.dtype]]:
    action, frame = np.dtype(spec.action_dtype), np.dtype(spec.frame_dtype)
    flag = np.dtype(bool)
    results = [((), np.dtype(np.float32)), ((), flag), ((), flag), (spec.frame_shape, frame)]
    masks = [((spec.actions,), flag), ((spec.actions,), flag), ((), flag)]
    return [(spec.action_shape, action), (spec.frame_shape, frame), *results, *masks]


def _padded(lanes: int, shape: tuple[int, ...], dtype: np.dtype) -> int:
    size = lanes * int(np.prod(shape, dtype=int)) * dtype.itemsize
    return -(-size // ALIGNMENT) * ALIGNMENT


class Worker:
    """The lanes of a worker, and the orders that it carries out."""

    def __init__(self) -> None:
        self._play: Any = None
        self._board: Any = None
        self._orders: dict[bytes, Callable[[], None]] = {
            STEP: self._step,
            RESET: self._reset,
            LISTEN: self._listen,
        }

    def carry_out(self, order: bytes) -> bytes:
        """Carry out an order: DONE, or FAILED with a message on stdout."""
        try:
            self._orders[order]()
        except Exception as problem:  # a simulator may raise anything; the parent reports it
            known = isinstance(problem, UsageError)
            _send(
                {"problem": str(problem) if known else f"{type(problem).__name__}: {problem}", "known": known}
            )
            return FAILED
        return DONE

    def _listen(self) -> None:
        message = json.loads(sys.stdin.readline())
        _send(getattr(self, f"_{message.pop('do')}")(**message))

    def _make(self, name: str, seeds: list[int], options: dict) -> dict:
        self._play = make_lanes(name, seeds, **options)
        return {
            "name": self._play.name,
            "spec": self._play.spec.as_json(),
            "versions": self._play.versions(),
            "resumable": getattr(self._play, "resumable", False),
        }

    def _share(self, path: str, lanes: int, first: int) -> dict:
        spec, mine = self._play.spec, slice(first, first + self._play.lanes)
        with open(path, "r+b") as file:
            memory = mmap.mmap(file.fileno(), board_size(spec, lanes))
        self._board = Board(*(column[mine] for column in board(spec, lanes, memory)))
        return {}

    def _render(self) -> dict:
        picture = self._play.render()
        return {"shape": picture.shape, "pixels": base64.b64encode(picture.tobytes()).decode()}

    def _saved(self) -> dict:
        return {"lanes": from_array(self._play.saved()["lanes"])}

    def _restore(self, lanes: list) -> dict:
        self._play.restore({"lanes": as_array(lanes)})
        self._write_mask()
        return {}

    def _nothing(self) -> dict:
        return {}

    def _close(self) -> dict:
        if self._play is not None:
            self._play.close()
        self._play = self._board = None
        return {}

    def _reset(self) -> None:
        self._board.observation[:] = self._play.reset()
        self._write_mask()

    def _step(self) -> None:
        for column, values in zip(self._board[1:7], self._play.step(self._board.action), strict=True):
            if values is not None:
                column[:] = values
        self._write_mask()

    def _write_mask(self) -> None:
        allowed = getattr(self._play, "allowed", None)
        self._board.masked[:] = allowed is not None
        if allowed is not None:
            self._board.allowed[:] = allowed


def _send(message: dict) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(go: list[int], done: int) -> None:
    """Carry out orders until the parent process ends, which closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which may have to save
    worker, turn = Worker(), 0
    while order := os.read(go[turn % 2], 1):
        os.write(done, worker.carry_out(order))
        turn += 1


if __name__ == "__main__":
    first, second, done = map(int, sys.argv[1:])
    main([first, second], done)
