"""A log of another program, part by part, and what the user says about it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from optimist.data.transition import OF_STEPS, Spec

Part = dict[str, np.ndarray]  # consecutive rows, by the names of columns in `Dataset.from_arrays`
OBSERVATIONS = ("observations", "next_observations")
FRAMES = "frames"  # in place of both: the observations with the final one of every episode after its last row
LANES = "lanes"
STORED = (*OBSERVATIONS, FRAMES, LANES, *(column.plural for column in OF_STEPS))


class Actions(NamedTuple):
    """Discrete actions 0 to number - 1 with their names, or vectors with their bounds (number 0)."""

    number: int = 0
    names: tuple[int | str, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    distinct: np.ndarray | None = None  # if they have names: the actions as they are in the log, sorted
    numbers: np.ndarray | None = None  # and the number of each


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


@dataclass(frozen=True)
class Log:
    """A log of another program, which can be read more than once.

    `columns` are names of `Dataset.from_arrays`. "frames" may stand for both columns of observations: then
    the final observation of every episode follows its last row. With "lanes", which all rows of a part share,
    rows of another lane follow a gap."""

    columns: Collection[str]
    parts: Callable[[Collection[str]], Iterable[Part]]  # these columns of all rows in time order
    rows: int = 0  # 0: not known yet
    asked: Asked = Asked()
    spec: Spec | None = None  # if the log declares it, as those do that this package wrote
    actions: Actions | None = None  # the number or the bounds, if the log declares them
    actions_are_named: bool = False  # a log with a spec has the names of its actions, not their numbers
    is_sorted: bool = False  # its rows were sorted by time, as the user asked
    is_padded: bool = False  # the last rows of truncated episodes hold final observations, and are no steps
    provenance: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # on what was chosen or left out; reading may add some
    heads: Sequence[str] = ()  # of the table of its contents
    contents: Sequence[Sequence[str]] = ()
    in_file: Callable[[str], str] = str  # an error in which rows have their numbers in the file
    close: Callable[[], None] = lambda: None


def with_following(parts: Iterable[Part]) -> Iterator[tuple[Part, Part | None]]:
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
