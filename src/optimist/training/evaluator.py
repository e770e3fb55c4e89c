"""A child process that evaluates the policies of a run, while this process goes on learning.

On a GPU the programs of one process run one after the other: in a second thread every action would wait for
hundreds of gradient steps. Programs of two processes take turns.
"""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import jax

from optimist.envs._processes import SAFELY, variables
from optimist.errors import RunError
from optimist.training.evaluation import EpisodeScore
from optimist.training.storage import checkpoint

CHILD = "optimist.training.evaluator_child"
# The child has its own settings of JAX. These change numbers or the device, and a program may have set them.
SETTINGS = (
    *("jax_platforms", "jax_enable_x64", "jax_default_matmul_precision"),
    *("jax_default_prng_impl", "jax_threefry_partitionable"),
)
# The learner has taken most of the device's memory, so the child takes only what it needs.
AS_NEEDED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
JOINED = 10  # seconds; the thread ends at once when the child has


class EvaluatorError(RunError):
    """The child process cannot evaluate."""


class Evaluator:
    """Evaluates one step at a time; the child ends with this process, however that ends."""

    def __init__(self, config: dict, how: dict):
        """`config` is that of the run, `how` the arguments of every evaluation. The child takes seconds to
        start; nothing waits for it."""
        try:
            self._child = subprocess.Popen(
                [sys.executable, SAFELY, "-m", CHILD],
                env={**variables(), **AS_NEEDED},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # this process has printed the same warnings
            )
        except OSError as problem:
            raise EvaluatorError(str(problem)) from problem
        self._answer: dict = {}
        self._thread: threading.Thread | None = None
        settings = {name: getattr(jax.config, name) for name in SETTINGS}
        self._talk(self._send, {"config": config, "how": how, "settings": settings, "device": device()})

    def _talk(self, say: Callable[..., None], *what: Any) -> None:
        """Talk with the child in a thread: it may not listen yet, and it answers when it has played."""
        words = (self._thread, say, *what)
        self._thread = threading.Thread(target=self._say, args=words, name="evaluation", daemon=True)
        self._thread.start()

    def _say(self, before: threading.Thread | None, say: Callable[..., None], *what: Any) -> None:
        try:
            if before:
                before.join()
            say(*what)
        except OSError:  # the child closed its pipe
            self._answer = {"problem": self._ended()}
        except Exception as problem:  # raised where the training waits
            self._answer = {"problem": f"{type(problem).__name__}: {problem}"}

    def _send(self, message: dict, *parts: bytes | memoryview) -> None:
        for part in (json.dumps(message).encode() + b"\n", *parts):
            self._input.write(part)
        self._input.flush()

    def begin(self, step: int, params: Any) -> None:
        """Evaluate the parameters, which must not change meanwhile."""
        self._talk(self._evaluate, step, params)

    def _evaluate(self, step: int, params: Any) -> None:
        content = checkpoint.content(params)
        self._send({"step": step, "bytes": sum(map(len, content))}, *content)
        line = self._output.readline()
        self._answer = json.loads(line) if line else {"problem": self._ended()}

    def _ended(self) -> str:
        return f"its process ended with code {self._child.wait()}"

    @property
    def _input(self) -> Any:
        return self._child.stdin

    @property
    def _output(self) -> Any:
        return self._child.stdout

    def is_over(self, seconds: float = 0) -> bool:
        """Is the evaluation over, or does it end within so many seconds?"""
        assert self._thread is not None  # it talks since it exists
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def episodes(self) -> list[EpisodeScore]:
        """The episodes of the evaluation that is over; EvaluatorError if the child could not play them."""
        if "problem" in self._answer:
            raise EvaluatorError(self._answer["problem"])
        return [EpisodeScore(*row) for row in self._answer["episodes"]]

    def end(self) -> None:
        """End the child at once."""
        self._child.kill()
        self._child.wait()
        self.is_over(JOINED)
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):  # of bytes that the child did not read
                pipe.close()


def device() -> str:
    """The kind of device on which this process computes."""
    return jax.devices()[0].device_kind
