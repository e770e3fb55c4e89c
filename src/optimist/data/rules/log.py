"""A log of another program, part by part, and what the user says about it."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from optimist.data.transition import OF_STEPS, Spec

Part = dict[str, np.ndarray]  # consecutive rows, by the names of columns in `Dataset.from_arrays`
OBSERVATIONS = ("observations", "next_observations")
FRAMES = "frames"  # in place of both: the observations with the final one of every episode after its last row
STORED = (*OBSERVATIONS, FRAMES, *(column.plural for column in OF_STEPS))


class Actions(NamedTuple):
    """Discrete actions 0 to number - 1 with their names, or vectors with their bounds (number 0)."""

    number: int = 0
    names: tuple[int | str, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    distinct: np.ndarray | None = None  # if they have names: the actions as they are in the log, sorted
    numbers: np.ndarray | None = None  # and the number of each


class Log(Protocol):
    """A log of another program, which can be read more than once."""

    @property
    def rows(self) -> int:
        """The number of rows; 0 if it is not known yet."""
        ...

    @property
    def columns(self) -> Collection[str]:
        """The names of its columns, "episodes" among them if rows have a label."""
        ...

    @property
    def spec(self) -> Spec | None:
        """The spec, if this package wrote the log."""
        ...

    @property
    def actions(self) -> Actions | None:
        """The number or the bounds of its actions, if the log declares them."""
        ...

    @property
    def actions_are_named(self) -> bool:
        """Whether a log that this package wrote has the names of its actions, not their numbers."""
        ...

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        """These columns of all rows in time order, a bounded number of rows at a time."""
        ...


@dataclass(frozen=True)
class Asked:
    """What the user says about a log."""

    environment: str | None = None
    actions_count: int | None = None
    action_names: tuple[Any, ...] | None = None  # of all actions, in the order of their numbers
    stack: int = 1
    channels: str | None = None
    every_end_is_terminal: bool = False
    action_low: Any = None  # of each number of an action vector, or of all
    action_high: Any = None
    names_are_words: bool = False  # on a command line the name 7 is written like the text "7"


def with_following(parts: Iterator[Part]) -> Iterator[tuple[Part, Part | None]]:
    """Every part, with the part after it; None after the last."""
    held: Part | None = None
    for part in parts:
        if not len(next(iter(part.values()))):
            continue
        if held is not None:
            yield held, part
        held = part
    if held is not None:
        yield held, None
