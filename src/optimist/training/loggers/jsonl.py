"""Figures as lines of metrics.jsonl, each with a checksum; the run folder rewinds the file on resumption."""

import json
from collections.abc import Mapping
from pathlib import Path

from optimist.training.storage import rows
from optimist.training.storage.rows import METRICS


class Jsonl:
    def __init__(self, folder: Path, seeds: tuple[int, ...] = (), step: int = 0):
        self._path = folder / METRICS

    def add(self, step: int, values: Mapping[str, float], seed: int) -> None:
        if "return" not in values:  # `return` is an evaluation, and episodes.csv has all its episodes
            rows.append(self._path, [json.dumps({"step": step, "seed": seed, **values})])

    def close(self) -> None:
        """Nothing to do: every line is in the file already."""
