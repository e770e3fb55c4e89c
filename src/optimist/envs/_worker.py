"""A worker process that plays some lanes of an environment; `_workers` starts it as `python -m`.

All workers of a group read their orders, one byte each, from the same pipe, and answer with one byte. Actions
and results are in memory that is shared with the parent process.
"""

import base64
import json
import os
import signal
import sys
from typing import Any

from optimist.data.transition import Spec
from optimist.envs import make_lanes
from optimist.envs._environment import as_array, from_array
from optimist.envs._workers import DONE, FAILED, LISTEN, RESET, STEP, Board
from optimist.errors import UsageError


class Worker:
    """The lanes of a worker, and the orders that it carries out."""

    def __init__(self) -> None:
        self._play: Any = None
        self._board: Any = None
        self._orders = {STEP: self._step, RESET: self._reset, LISTEN: self._listen}

    def carry_out(self, order: bytes) -> bytes:
        """Carry out an order: DONE, or FAILED with a message on stdout."""
        try:
            self._orders[order]()
        except Exception as problem:  # a simulator may raise anything; the parent reports it
            known = isinstance(problem, UsageError)
            words = str(problem) if known else f"{type(problem).__name__}: {problem}"
            _send({"problem": words, "known": known})
            return FAILED
        return DONE

    def _listen(self) -> None:
        message = json.loads(sys.stdin.readline())
        _send(getattr(self, f"_{message.pop('do')}")(**message) or {})

    def _make(self, name: str, seeds: list[int], options: dict) -> dict:
        play = self._play = make_lanes(name, seeds, **options)
        resumable = getattr(play, "resumable", False)
        about = {"name": play.name, "versions": play.versions(), "resumable": resumable}
        return {**about, "spec": play.spec.as_json()}

    def _share(self, path: str, lanes: int, first: int) -> None:
        spec: Spec = self._play.spec
        with open(path, "r+b") as file:
            board = Board.on(file, spec, lanes)
        self._board = Board(*(column[first : first + self._play.lanes] for column in board))

    def _render(self) -> dict:
        picture = self._play.render()
        return {"shape": picture.shape, "pixels": base64.b64encode(picture.tobytes()).decode()}

    def _saved(self) -> dict:
        return {"lanes": from_array(self._play.saved()["lanes"])}

    def _restore(self, lanes: list) -> None:
        self._play.restore({"lanes": as_array(lanes)})
        self._write_mask()

    def _nothing(self) -> None:
        """While lane 0, which is another worker's, is drawn."""

    def _close(self) -> None:
        if self._play is not None:
            self._play.close()
        self._play = self._board = None

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
    print(json.dumps(message), file=sys.__stdout__, flush=True)


def main(go: list[int], done: int) -> None:
    """Carry out orders until the parent process ends, which closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which may have to save
    sys.stdout = sys.stderr  # what a simulator prints is no answer
    worker, turn = Worker(), 0
    while order := os.read(go[turn % 2], 1):
        os.write(done, worker.carry_out(order))
        turn += 1


if __name__ == "__main__":
    first, second, done = map(int, sys.argv[1:])
    main([first, second], done)
