"""Evaluation episodes on disk: one row each in episodes.csv."""

import csv
import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from optimist.data.disk.files import remove, write_whole
from optimist.errors import RunError
from optimist.training.storage import checked_lines as rows

# Another thread may drop the bytes, which are Python's, when the interpreter is closing: that aborts it.
ONE_THREAD = arrow_csv.ReadOptions(use_threads=False)
COLUMNS = ("step", "seed", "episode", "return", "length")


class EpisodeScore(NamedTuple):
    """One evaluation episode, as a row of `episodes.csv`."""

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
    """All rows of an episodes.csv; RunError for a row that cannot be read."""
    content = rows.verified(path)
    return read_at_once(content) or read_by_row(content, path)


def read_at_once(content: bytes) -> EvaluationEpisodes | None:
    """Read by columns, many times faster than by rows; None on any error, which `read_by_row` reports."""
    whole, real = pa.int64(), pa.float64()
    types = dict(zip(COLUMNS, (whole, whole, whole, real, whole), strict=True))
    options = arrow_csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False)
    try:
        table = arrow_csv.read_csv(pa.BufferReader(content), ONE_THREAD, convert_options=options)
    except pa.ArrowInvalid:
        return None
    if tuple(table.column_names) != COLUMNS:
        return None
    found = EvaluationEpisodes(*(table[name].to_numpy() for name in COLUMNS))
    return found if np.isfinite(found.score).all() else None


def read_by_row(content: bytes, path: Path) -> EvaluationEpisodes:
    reader = csv.DictReader(io.StringIO(content.decode(errors="replace"), newline=""))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise RunError(f"{path} does not begin with {','.join(COLUMNS)}: evaluate the run again")
    try:
        read = [_episode(row, f"{path}, line {reader.line_num}") for row in reader]
    except csv.Error:
        raise RunError(f"{path}, line {reader.line_num}, is not a row: evaluate the run again") from None
    return EvaluationEpisodes(*(np.array(column) for column in zip(*read, strict=True))) if read else NONE


def _episode(row: dict, place: str) -> EpisodeScore:
    try:
        step, seed, number, length = (int(row[name]) for name in ("step", "seed", "episode", "length"))
        value = float(row["return"])
        if None in row:  # more values than columns
            raise ValueError
    except (TypeError, ValueError):
        raise RunError(f"{place} is not an evaluation episode: evaluate the run again") from None
    if not math.isfinite(value):
        raise RunError(f"{place} holds a return of {value}: evaluate the run again")
    return EpisodeScore(step, seed, number, value, length)


def write(path: Path, episodes: Iterable[EpisodeScore]) -> None:
    """Write a file of evaluation episodes, one per row."""
    remove(rows.checks_of(path))  # checks of the former content
    write_whole(path, "".join([HEADER, *lines(episodes)]).encode())


def lines(episodes: Iterable[EpisodeScore]) -> list[str]:
    return [",".join(map(str, row)) + "\n" for row in episodes]


HEADER = ",".join(COLUMNS) + "\n"
NONE = EvaluationEpisodes(*(np.empty(0, int) for _ in COLUMNS))
