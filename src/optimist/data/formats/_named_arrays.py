"""Files of named arrays with a row for each step: what .npz and HDF5 files have in common."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from optimist.data.formats._incoming import BYTES_AT_ONCE
from optimist.data.formats._options import ArrayFacts
from optimist.errors import DataError, did_you_mean, in_one_line, some_of

NEEDED = ("observations", "actions", "rewards", "terminals")
KNOWN = {  # the column of a log that an array of this name is
    **{name: name for name in (*NEEDED, "truncations", "next_observations", "episodes")},
    **{name: name for name in ("probabilities", "allowed_actions", "next_allowed_actions")},
    "timeouts": "truncations",
    "truncated": "truncations",
}
MOST_ROWS = 2**17  # that are read together


@dataclass(frozen=True)
class NamedArrayFacts(ArrayFacts):
    """Facts that are not in the arrays."""

    truncations: Annotated[
        str | None, '"no" says that no time limit ended an episode, if the file does not say where'
    ] = None
    drop: Annotated[str, "arrays to leave out: probabilities,next_observations"] = ""

    def dropped(self, names: Collection[str], path: Path) -> list[str]:
        """The arrays to leave out; DataError for one that the file does not have."""
        asked = self.drop.split(",") if self.drop else []
        for name in asked:
            if name not in names:
                raise DataError(
                    f'--drop: {path} has no array "{in_one_line(name)}": {did_you_mean(name, list(names))}'
                )
        return asked


def check_needed(columns: Collection[str], held: Iterable[str], path: Path) -> None:
    """Raise DataError if the file lacks a column that every log has; `held` are the names of its arrays."""
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        shown = some_of([in_one_line(name, 40) for name in held], 100) or "nothing"
        raise DataError(f"{path} holds {shown}, and lacks {', '.join(missing)}: save them with these names")


def common_length(arrays: Mapping[str, tuple[tuple[int, ...], Any]], path: Path) -> int:
    """The number of rows of all these arrays, given by shape and type; DataError if they differ."""
    lengths = {name: shape[0] if shape else 0 for name, (shape, _) in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{path} has arrays of different lengths: {in_one_line(lengths, 200)}; save it again")
    return next(iter(lengths.values()))


def rows_together(arrays: Iterable[tuple[tuple[int, ...], np.dtype]]) -> int:
    """The number of rows of all these arrays, given by shape and type, that are read together."""
    width = sum(dtype.itemsize * int(np.prod(shape[1:])) for shape, dtype in arrays)
    return max(1, min(MOST_ROWS, BYTES_AT_ONCE // max(1, width)))
