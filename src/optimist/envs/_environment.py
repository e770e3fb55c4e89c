"""The interface of an environment: lanes of one game that are stepped together."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

from optimist.data.transition import Spec
from optimist.errors import OptimistError, RunError


class Step(NamedTuple):
    """One step of every lane; arrays with a leading lane axis, frames single and unstacked.

    A step ends its episode as `terminal` or as `truncated`, never both. The two observations may be the
    same array where no episode ended: read them, do not write into them.
    """

    observation: np.ndarray  # what the lane acts on next: already reset where an episode ended
    reward: np.ndarray  # float32, unclipped
    terminal: np.ndarray
    truncated: np.ndarray
    next_observation: np.ndarray  # the true successor: the final observation where an episode ended
    next_allowed: Any = None  # the actions that could be chosen in it, (lanes, A), if the environment says so


class Environment(Protocol):
    """`lanes` copies of one game that are stepped together and reset automatically.

    An environment with the optional attribute `resumable` returns its whole state as arrays from `saved()`,
    and continues from that state after `restore()`, which checks the arrays because they come from a file.
    The optional attribute `encoding` says in words how frames are made of the game's own observations.
    The optional attribute `allowed` is the mask of the actions that can be chosen now, (lanes, A), after each
    reset and step; None before the first reset, and where the environment has no masks."""

    name: str
    spec: Spec
    lanes: int

    def reset(self) -> np.ndarray:
        """Begin a new episode in every lane; the random streams continue and do not start over."""
        ...

    def step(self, actions: Any) -> Step: ...

    def render(self) -> np.ndarray:
        """A picture of lane 0, uint8 (H, W, 3)."""
        ...

    def versions(self) -> dict[str, str]:
        """The versions of the packages that determine what happens in this environment."""
        ...

    def close(self) -> None: ...


class EnvironmentFailed(RunError):
    """An environment raised an exception, which is the cause of this one."""


@contextmanager
def named_failures(name: str) -> Iterator[None]:
    """Turn whatever an environment raises into one line that names the environment."""
    try:
        yield
    except OptimistError:
        raise
    except (Exception, SystemExit) as problem:
        raise EnvironmentFailed(
            f"the environment {name} failed ({type(problem).__name__}: {problem}): mend it, and the same "
            "command continues; --debug shows where it failed"
        ) from problem
