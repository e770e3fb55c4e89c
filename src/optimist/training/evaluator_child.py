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
from functools import cached_property
from typing import Any, TextIO

import jax

from optimist import plugins
from optimist.errors import RunError, in_one_line
from optimist.training.evaluation import evaluate
from optimist.training.evaluator import device
from optimist.training.learner import Learner
from optimist.training.run import learner_of
from optimist.training.storage import checkpoint


class Child:
    """Evaluates the policies of one run."""

    def __init__(self, config: dict, how: dict, settings: dict, device: str):
        self._config, self._how, self._settings, self._device = config, how, settings, device

    def answer(self, step: int, content: bytes) -> dict:
        try:
            params = checkpoint.from_content(content, self.learner.shapes(self._how["seeds"]).params)
            rows = evaluate(self.learner, params, self._config["environment"], **self._how, step=step)
        except Exception as problem:  # an environment may raise anything; the parent reports it
            return {"problem": in_one_line(f"{type(problem).__name__}: {problem}")}
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


def _read(requests: "queue.Queue[Any]") -> None:
    """Put everything that the parent sends into the queue. When the parent ends, its pipe closes: then this
    process ends too, even during an evaluation."""
    stream = sys.stdin.buffer
    try:
        requests.put(json.loads(stream.readline()))
        while True:
            request = json.loads(stream.readline())
            requests.put((request["step"], stream.read(request["bytes"])))
    finally:
        os._exit(0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # an environment may print; that is no answer
    requests: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    try:
        _serve(requests, answers)
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
