"""Evaluation episodes on disk: one row each in episodes.csv."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from optimist.data.disk.files import naming, write_whole
from optimist.errors import RunError
from optimist.training.storage import rows

NAME = "episodes.csv"
COLUMNS = {"step": pa.int64(), "seed": pa.int64(), "episode": pa.int64(), "return": pa.float64()}
COLUMNS |= {"length": pa.int64()}
PLAIN = ",".join(COLUMNS) + "\n"  # the first line of a file outside a run folder, without checksums
HEADER = PLAIN.replace("\n", ",check\n")
# Another thread may drop the bytes, which are Python's, when the interpreter is closing: that aborts it.
ONE_THREAD = arrow_csv.ReadOptions(use_threads=False)
OPTIONS = arrow_csv.ConvertOptions(
    column_types=COLUMNS, include_columns=list(COLUMNS), null_values=[], strings_can_be_null=False
)


class EpisodeScore(NamedTuple):
    """One evaluation episode."""

    step: int
    seed: int
    episode: int
    score: float
    length: int


class EvaluationEpisodes(NamedTuple):
    """All evaluation episodes of a run, as columns."""

    step: np.ndarray
    seed: np.ndarray
    episode: np.ndarray
    score: np.ndarray
    length: np.ndarray


def read(path: Path) -> EvaluationEpisodes:
    """All rows of an episodes.csv; RunError for a file with others."""
    with naming(path):
        content = path.read_bytes()
    if not content.startswith(PLAIN.encode()):
        content = b"".join(rows.verified(path, HEADER))
    if not content.startswith((PLAIN.encode(), HEADER.encode())):
        return NONE
    try:
        table = arrow_csv.read_csv(pa.BufferReader(content), ONE_THREAD, convert_options=OPTIONS)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as problem:
        reason = str(problem).partition("\n")[0][:200]
        raise RunError(f"{path} has a row that is no episode ({reason}): evaluate the run again") from None
    found = EvaluationEpisodes(*(table[name].to_numpy() for name in COLUMNS))
    if not np.isfinite(found.score).all():
        raise RunError(f"{path} holds a return that is not finite: evaluate the run again")
    return found


def append(path: Path, episodes: Iterable[EpisodeScore]) -> None:
    rows.append(path, _lines(episodes), HEADER)


def write(path: Path, episodes: Iterable[EpisodeScore]) -> None:
    """Write a plain file of evaluation episodes, one per row."""
    write_whole(path, "".join([PLAIN, *(f"{line}\n" for line in _lines(episodes))]).encode())


def _lines(episodes: Iterable[EpisodeScore]) -> list[str]:
    return [",".join(map(str, row)) for row in episodes]


NONE = EvaluationEpisodes(*(np.empty(0, int) for _ in COLUMNS))
