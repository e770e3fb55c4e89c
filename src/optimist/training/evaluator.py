"""A child process that evaluates the policies of a run, while this process goes on learning.

On a GPU the programs of one process run one after the other: in a second thread every action would wait for
hundreds of gradient steps. Programs of two processes take turns.
"""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from optimist.data.disk.files import write_whole
from optimist.envs._processes import SAFELY, variables
from optimist.errors import RunError, StorageError, in_one_line
from optimist.training.evaluation import EpisodeScore
from optimist.training.last_output import LastOutput
from optimist.training.storage import checkpoint

CHILD = "optimist.training.evaluator_child"
WITH_STACKS = ("-X", "faulthandler")  # options of the interpreter: a process that crashes prints where
# The child has its own settings of JAX. These change numbers or the device, and a program may have set them.
SETTINGS = (
    *("jax_platforms", "jax_enable_x64", "jax_default_matmul_precision"),
    *("jax_default_prng_impl", "jax_threefry_partitionable"),
)
# The learner has taken most of the device's memory, so the child takes only what it needs.
AS_NEEDED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
JOINED = 10  # seconds; the thread ends at once when the child has
# The signals of a process that crashed by itself, in an environment or in a library that is not Python.
CRASHES = [signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL]
CRASHES += [signal.SIGBUS] if hasattr(signal, "SIGBUS") else []  # not on Windows
CRASH = "the evaluation beside training crashed"
REMEDY = "mend the environment or use --evaluation wait; the same command continues from the last checkpoint"
MOST = 300  # letters of a problem in a message


class EvaluatorError(RunError):
    """The child process cannot evaluate."""


class CrashError(EvaluatorError):
    """The child process crashed: an evaluation in this process might end the run without a word."""


class Evaluator:
    """Evaluates one step at a time; the child ends with this process, however that ends."""

    def __init__(self, config: dict, how: dict, output: Path):
        """`config` is that of the run, `how` the arguments of every evaluation. If the child fails, its last
        output is written to the file `output`. It takes seconds to start; nothing waits for it."""
        try:
            self._child = subprocess.Popen(
                [sys.executable, SAFELY, *WITH_STACKS, "-m", CHILD],
                env={**variables(), **AS_NEEDED},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,  # not shown: this process has printed the same warnings
            )
        except OSError as problem:
            raise EvaluatorError(str(problem)) from problem
        self._printed: Any = self._child.stderr
        self._last_output, self._kept = LastOutput(self._printed), output
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
            self._answer = self._ended()
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
        self._answer = json.loads(line) if line else self._ended()

    def _ended(self) -> dict:
        """Why the child ended: the signal, or its code and the last line that it printed."""
        code = self._child.wait()
        if code < 0:
            short = ", perhaps because memory is short" * (-code == signal.SIGKILL)
            return {"problem": f"its process was ended by {signal.Signals(-code).name}{short}"}
        said = in_one_line(self._last_output.last_line(), MOST)
        return {"problem": f"its process ended with code {code}" + f" ({said})" * bool(said)}

    @property
    def _crashed(self) -> bool:
        return -(self._child.poll() or 0) in CRASHES

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
        """The episodes of the evaluation that is over; EvaluatorError if the child could not play them. Then
        the child is ended, and its last output is kept."""
        if "problem" in self._answer:
            self.end()  # a child that lives is ended by SIGKILL, which is no crash
            problem = self._answer["problem"] + self._where_more_is()
            raise CrashError(f"{CRASH} ({problem}): {REMEDY}") if self._crashed else EvaluatorError(problem)
        return [EpisodeScore(*row) for row in self._answer["episodes"]]

    def _where_more_is(self) -> str:
        """Keep what the child printed last; the words that name the file."""
        text = self._last_output.text()
        with contextlib.suppress(StorageError):  # a full disk hides nothing that the message says
            if text:
                write_whole(self._kept, text.encode())
                return f"; more in {self._kept}"
        return ""

    def end(self) -> None:
        """End the child at once."""
        self._child.kill()
        self._child.wait()
        self.is_over(JOINED)
        self._last_output.text()  # all of it is read before the pipe is closed
        for pipe in (self._input, self._output, self._printed):
            with contextlib.suppress(OSError):  # of bytes that the child did not read
                pipe.close()


def device() -> str:
    """The kind of device on which this process computes."""
    return jax.devices()[0].device_kind
