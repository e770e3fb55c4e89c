"""metrics.jsonl: the logged values of one run, as rows and as curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optimist.data.disk.records import json_value, record
from optimist.errors import RunError
from optimist.training.storage import rows
from optimist.training.storage.run_folder import METRICS


class RunCurve(NamedTuple):
    """One figure of one seed, in the order of the steps."""

    steps: np.ndarray
    values: np.ndarray


def read_metrics(run: Path) -> list[dict]:
    """Every row of metrics.jsonl; none if the run has no such log."""
    file = run / METRICS
    lines = rows.verified(file) if file.exists() else []
    try:
        return [_row(json_value(line)) for line in lines]
    except (ValueError, TypeError, KeyError) as problem:
        raise RunError(
            f"{file} has a row of other things than figures: restore it, or start again with --restart"
        ) from problem


def _row(found: dict) -> dict:
    del found["check"]
    figures = record(dict[str, int | float | None], found)
    record(tuple[int, int], [figures["step"], figures["seed"]])
    return figures


def curves_of(rows: Sequence[dict], name: str) -> dict[int, RunCurve]:
    """The curve of each seed that has this figure."""
    found: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        if name in row:
            found.setdefault(row["seed"], []).append((row["step"], row[name]))
    return {seed: RunCurve(*map(np.array, zip(*points, strict=True))) for seed, points in found.items()}
