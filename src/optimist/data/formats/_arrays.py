"""Files of arrays with a row for each step: what such files do not hold, and what .npz and HDF5 have in
common."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np

from optimist.data.formats._incoming import BYTES_AT_ONCE
from optimist.data.intake import KNOWN as COLUMNS
from optimist.data.intake import NEEDED
from optimist.data.rules.log import Asked
from optimist.errors import DataError, UsageError, did_you_mean, in_one_line, some_of

KNOWN = {  # the column of a log that an array of this name is
    **{name: name for name in (*COLUMNS, "episodes")},
    "timeouts": "truncations",
    "truncated": "truncations",
}
MOST_ROWS = 2**17  # that are read together
BOUND = "of every number of an action vector, or of each as in 0,-300; none: that of the log"

Shaped = tuple[tuple[int, ...], np.dtype]  # the shape and the type of an array


@dataclass(frozen=True)
class ArrayFacts:
    """Facts about arrays; a format adds its own options."""

    environment: Annotated[str | None, "the environment, such as gym/CartPole-v1"] = None
    channels: Annotated[str | None, "first or last: the axis of an image that counts its channels"] = None
    stack: Annotated[int, "frames in an observation"] = 1
    action_low: Annotated[tuple[float, ...] | float | None, BOUND] = None
    action_high: Annotated[tuple[float, ...] | float | None, BOUND] = None
    actions_count: Annotated[int | None, "number of discrete actions; none: those of the log"] = None
    action_names: Annotated[
        str | None, "all actions in the order of their numbers: a,b,c; none: those of the log, sorted"
    ] = None

    def asked(self, environment: str | None, truncations: str | None) -> Asked:
        """What the user says about the log; `environment` is the one in the file."""
        return Asked(
            environment=self.environment or environment or None,
            actions_count=self.actions_count,
            action_names=tuple(self.action_names.split(",")) if self.action_names else None,
            stack=self.stack,
            channels=self.channels,
            every_end_is_terminal=truncations == "no",
            action_low=self.action_low,
            action_high=self.action_high,
            names_are_words=True,
        )


@dataclass(frozen=True)
class GameFacts:
    """Facts about the log of an Atari game."""

    environment: Annotated[str | None, "the game, such as atari/Breakout; none: from the address"] = None
    actions_count: Annotated[int | None, "number of actions; none: the game's own"] = None

    def __post_init__(self) -> None:
        if self.actions_count is not None and self.actions_count < 1:
            raise DataError(f"{self.actions_count} actions: give the game's number of actions, at least 1")


@dataclass(frozen=True)
class NamedArrayFacts(ArrayFacts):
    """Facts that are not in the arrays."""

    truncations: Annotated[
        str | None, '"no" says that no time limit ended an episode, if the file does not say where'
    ] = None
    drop: Annotated[str, "arrays to leave out: probabilities,next_observations"] = ""

    def __post_init__(self) -> None:
        if self.truncations not in (None, "no"):
            raise UsageError(
                f'--truncations {self.truncations}: give "no", or put an array of truncations into the file'
            )

    def dropped(self, names: Collection[str], path: Path) -> list[str]:
        """The arrays to leave out; DataError for one that the file does not have."""
        asked = self.drop.split(",") if self.drop else []
        for name in asked:
            if name not in names:
                raise DataError(
                    f'--drop: {path} has no array "{in_one_line(name)}": {did_you_mean(name, list(names))}'
                )
        return asked


def common_length(
    arrays: Mapping[str, Shaped], uses: Collection[str], held: Iterable[str], path: Path
) -> int:
    """The number of rows of all these arrays; DataError if they differ, or if none is `used` as a column that
    every log has. `held` are the names in the file."""
    missing = [name for name in NEEDED if name not in uses]
    if missing:
        shown = some_of([in_one_line(name, 40) for name in held], 100) or "nothing"
        raise DataError(f"{path} holds {shown}, and lacks {', '.join(missing)}: save them with these names")
    lengths = {name: shape[0] if shape else 0 for name, (shape, _) in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{path} has arrays of different lengths: {in_one_line(lengths, 200)}; save it again")
    return next(iter(lengths.values()))


def rows_together(arrays: Iterable[Shaped]) -> int:
    """The number of rows of all these arrays that are read together."""
    width = sum(dtype.itemsize * prod(shape[1:]) for shape, dtype in arrays)
    return max(1, min(MOST_ROWS, BYTES_AT_ONCE // max(1, width)))
