"""The child process of `evaluator`, started as `python -m`: plays the episodes of every evaluation.

It reads a line about the run, then a line and the parameters for each evaluation, and answers each with one
line: the episodes, or the problem.
"""

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
from functools import cached_property
from typing import Any, TextIO

import jax

from optimist import plugins
from optimist.envs._environment import EnvironmentFailed
from optimist.errors import OptimistError, RunError, in_one_line
from optimist.training.evaluation import evaluate
from optimist.training.evaluator import MOST, device
from optimist.training.learner import Learner
from optimist.training.loading import learner_of
from optimist.training.storage import checkpoint


class Child:
    """Evaluates the policies of one run."""

    def __init__(self, config: dict, how: dict, settings: dict, device: str):
        self._config, self._how, self._settings, self._device = config, how, settings, device

    def answer(self, step: int, content: bytes) -> dict:
        try:
            params = checkpoint.from_content(content, self.learner.shapes(self._how["seeds"]).params)
            rows = evaluate(self.learner, params, self._config["environment"], **self._how, step=step)
        except (Exception, SystemExit) as problem:  # an environment may raise anything
            traceback.print_exc()  # the parent keeps this, and reports the line
            return {"problem": in_one_line(_in_words(problem), MOST)}
        return {"episodes": rows}

    @cached_property
    def learner(self) -> Learner:
        for name, value in self._settings.items():
            jax.config.update(name, value)
        if device() != self._device:  # another device rounds differently
            raise RunError(f"it computes on {device()} and not on {self._device}")
        agent = self._config["agent"]
        named = (agent["name"], agent.get("network", {}).get("torso", ""))
        plugins.allow(name for name in named if plugins.is_address(name))  # the parent uses them already
        return learner_of(self._config)


def _in_words(problem: BaseException) -> str:
    if isinstance(problem, EnvironmentFailed):
        return f"its environment failed, {_in_words(problem.__cause__ or problem)}"
    return str(problem) if isinstance(problem, OptimistError) else f"{type(problem).__name__}: {problem}"


def _read(requests: "queue.Queue[Any]") -> None:
    """Put everything that the parent sends into the queue. When the parent ends, its pipe closes: then this
    process ends too, even during an evaluation."""
    stream, code = sys.stdin.buffer, 1
    try:
        requests.put(json.loads(stream.readline()))
        while line := stream.readline():
            request = json.loads(line)
            requests.put((request["step"], stream.read(request["bytes"])))
        code = 0
    except Exception:  # such as MemoryError; a thread that the interpreter ends prints nothing
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # an environment may print; that is no answer
    requests: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    try:
        _serve(requests, answers)
    except BaseException:
        traceback.print_exc()  # `os._exit` would not
    finally:
        os._exit(1)  # at once: the interpreter would wait for the thread that reads


def _serve(requests: "queue.Queue[Any]", answers: TextIO) -> None:
    child = Child(**requests.get())
    with contextlib.suppress(Exception):  # the answer to the first request names the problem
        _ = child.learner  # so that the device is ready when the first request comes
    while True:
        answers.write(json.dumps(child.answer(*requests.get())) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
