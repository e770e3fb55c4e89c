"""Lanes divided among worker processes, for simulators that are written in Python or hold its lock.

Threads would not help: each would wait for the interpreter lock at every step. One write wakes a group of
workers (`_worker`), and a few reads collect their answers, whatever the size of the group. A group is kept
for the next environment of the same size, because importing a simulator can take longer than an evaluation.
"""

import atexit
import base64
import json
import mmap
import os
import select
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optimist.data.disk.manifest import spec_from
from optimist.data.transition import Spec
from optimist.envs._environment import Step, as_array, checked_actions, free_cores, from_array
from optimist.envs._processes import SAFELY, variables
from optimist.errors import RunError, UsageError

LANES_EACH = 8  # the least per process: waking one takes as long as a step of a few lanes
MEMORY = "/dev/shm"  # files in this folder, if it exists, are in memory
STEP, RESET, LISTEN = b"s", b"r", b"l"  # orders
DONE, FAILED = b".", b"!"  # answers
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

    @classmethod
    def on(cls, file: Any, spec: Spec, lanes: int) -> "Board":
        """The board in this file, which is made as large as it needs."""
        frame, flag, mask = (spec.frame_shape, spec.frame_dtype), ((), bool), ((spec.actions,), bool)
        results: list[Any] = [frame, ((), np.float32), flag, flag, frame]
        columns, begins = [(spec.action_shape, spec.action_dtype), *results, mask, mask, flag], [0]
        for shape, dtype in columns:
            size = lanes * int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
            begins.append(begins[-1] - (-size // ALIGNMENT) * ALIGNMENT)
        file.truncate(begins[-1])
        memory = mmap.mmap(file.fileno(), begins[-1])
        places = zip(columns, begins, strict=False)
        return cls(*(np.ndarray((lanes, *shape), dtype, memory, begin) for (shape, dtype), begin in places))


def usual_processes(lanes: int) -> int:
    """One per core, if each has enough lanes; one on Windows, whose processes do not inherit pipes."""
    if not hasattr(select, "poll"):
        return 1
    return max(1, min(free_cores(), lanes // LANES_EACH))


class Workers:
    """A group of worker processes. This process waits while they work, and they wait while it works.

    A turn begins with one byte for each worker on a shared pipe. Two pipes alternate, so that a fast worker
    cannot take the byte of a slower one as its next order.
    """

    def __init__(self, size: int):
        self.size = size
        (done, theirs), *go = [os.pipe() for _ in range(3)]
        self._done, self._go = done, [write for _, write in go]
        self._pipes = [done, *self._go]
        inherited = [*(read for read, _ in go), theirs]
        words = [sys.executable, SAFELY, "-m", "optimist.envs._worker", *map(str, inherited)]
        # They find the same modules as this process, and use one core each.
        settings = {**variables(), "OMP_NUM_THREADS": "1"}
        self._members: list[Any] = [
            subprocess.Popen(
                words,
                pass_fds=inherited,
                env=settings,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if number else None,  # all workers print the same
            )
            for number in range(size)
        ]
        for end in inherited:
            os.close(end)
        self._turn, self._turns_ended = 0, 0
        self._signs = select.poll()
        self._signs.register(done, select.POLLIN)
        for member in self._members:
            self._signs.register(member.stdout, 0)  # reports only that it closed

    def ask(self, questions: Sequence[dict]) -> list[dict]:
        """Send one question to each worker; their answers."""
        return self.turn(LISTEN, questions)

    def turn(self, order: bytes, questions: Sequence[dict] = ()) -> list[dict]:
        """All workers carry out the order in parallel; returns when all are done."""
        # First the order: a long question does not fit into a pipe without a reader.
        os.write(self._go[self._turn % 2], order * self.size)
        self._turn += 1
        for member, question in zip(self._members, questions, strict=False):
            member.stdin.write(json.dumps(question).encode() + b"\n")
            member.stdin.flush()
        # The messages before the bytes: a worker with a long message is not done until it is read.
        messages, answers = [self._received(member) for member in self._members if questions], b""
        while len(answers) < self.size:  # one byte from each worker
            if self._done not in dict(self._signs.poll()):
                self._raise_ended()
            answers += os.read(self._done, self.size)
        self._turns_ended += 1
        if FAILED in answers:
            sent = [member for member in self._members if select.select([member.stdout], [], [], 0)[0]]
            messages += map(self._received, sent)
            problem = next(message for message in messages if "problem" in message)
            raise (UsageError if problem["known"] else RunError)(problem["problem"])
        return messages

    def _received(self, member: Any) -> dict:
        line = member.stdout.readline()
        if not line:
            self._raise_ended()
        return json.loads(line)

    def _raise_ended(self) -> None:
        """A worker closed its pipe; shut the others down and raise RunError."""
        ended = dict(self._signs.poll(0))
        code = next(member.wait() for member in self._members if member.stdout.fileno() in ended)
        self.end()
        raise RunError(
            f"a worker process of an environment ended with code {code}: run again, with fewer lanes if "
            "memory is short"
        )

    @property
    def ready(self) -> bool:
        """Whether all workers run and wait for orders; False after a turn that an exception interrupted."""
        return self._turn == self._turns_ended and all(member.poll() is None for member in self._members)

    def end(self) -> None:
        """Close the pipes, upon which the workers end, and wait for them."""
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes = []
        for member in self._members:
            member.stdin.close()
            member.stdout.close()
            member.wait()


_idle: list[Workers] = []


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def _take(size: int) -> Workers:
    """An idle group of this size, or a new one."""
    for workers in [each for each in _idle if each.size == size]:
        _idle.remove(workers)
        if workers.ready:
            return workers
        workers.end()
    return Workers(size)


def _give_back(workers: Workers) -> None:
    """Close the environment and keep the group for another, or end it if it is not ready."""
    if not workers.ready:
        return workers.end()
    workers.ask([{"do": "close"}] * workers.size)
    _idle.append(workers)


class Split:
    """An `Environment` whose lanes are divided among the workers of a group."""

    def __init__(self, name: str, seeds: list[int], options: dict, processes: int):
        self.lanes, shares = len(seeds), np.array_split(seeds, processes)
        self._workers = _take(processes)
        self.close = weakref.finalize(self, _give_back, self._workers)  # once, also if it is never called
        wish: dict[str, Any] = {"do": "make", "name": name, "options": options}
        about, *_ = self._workers.ask([{**wish, "seeds": share.tolist()} for share in shares])
        self.name, self._versions = about["name"], about["versions"]
        self.resumable, self.spec = about["resumable"], spec_from(about["spec"])
        self._stops, self._started = np.cumsum([0, *map(len, shares)]).tolist(), False
        with tempfile.NamedTemporaryFile(dir=MEMORY if os.path.isdir(MEMORY) else None) as file:
            self._board = Board.on(file, self.spec, self.lanes)
            wish = {"do": "share", "path": file.name, "lanes": self.lanes}
            self._workers.ask([{**wish, "first": first} for first in self._stops[:-1]])

    def reset(self) -> np.ndarray:
        self._workers.turn(RESET)
        self._started = True
        return self._board.observation.copy()

    @property
    def allowed(self) -> np.ndarray | None:
        return self._board.allowed.copy() if self._board.masked.all() else None

    def step(self, actions: Any) -> Step:
        if not self._started:
            raise UsageError(f"{self.name}: call reset() before the first step()")
        self._board.action[:] = checked_actions(actions, self.spec, self.lanes)
        self._workers.turn(STEP)
        # Copies, because the next step overwrites the shared memory.
        taken = Step(*(column.copy() for column in self._board[1:7]))
        return taken if self._board.masked.all() else taken._replace(next_allowed=None)

    def saved(self) -> dict[str, np.ndarray]:
        answers = self._workers.ask([{"do": "saved"}] * self._workers.size)
        return {"lanes": as_array([state for answer in answers for state in answer["lanes"]])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        states = from_array(arrays["lanes"])
        if len(states) != self.lanes:
            raise ValueError("the state of other lanes")
        places = zip(self._stops[:-1], self._stops[1:], strict=True)
        self._workers.ask([{"do": "restore", "lanes": states[start:stop]} for start, stop in places])
        self._started = True

    def render(self) -> np.ndarray:
        answer, *_ = self._workers.ask([{"do": "render"}] + [{"do": "nothing"}] * (self._workers.size - 1))
        return np.frombuffer(base64.b64decode(answer["pixels"]), np.uint8).reshape(answer["shape"])

    def versions(self) -> dict[str, str]:
        return dict(self._versions)
