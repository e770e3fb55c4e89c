"""Loggers store the figures of a run: the files of this folder, and a user's own, named as module:Name.

Loggers are not part of a run's identity: a run may continue with others.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from optimist import plugins

USUAL = "jsonl,tensorboard"


class Logger(Protocol):
    """A class that is created as `Name(folder, seeds=(0, 1), step=0)`, with the run's folder and the step at
    which the run starts or continues. A continued run logs everything after that step again.

    `return` is the mean of an evaluation, `play/return` the mean of training play.
    """

    def add(self, step: int, values: Mapping[str, float], seed: int) -> None: ...

    def close(self) -> None: ...


def logger_classes(chosen: str | Iterable[Any]) -> list[Callable[..., Logger]]:
    """The classes of "jsonl,tensorboard,my_package:Wandb", or of a list of names and classes."""
    names = chosen.split(",") if isinstance(chosen, str) else chosen
    return [
        plugins.find("loggers", name.strip()) if isinstance(name, str) else name for name in names if name
    ]
