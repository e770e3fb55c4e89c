"""Figures as lines of metrics.jsonl, each with a check; the run folder rewinds it when a run goes on."""

import json
from collections.abc import Mapping
from pathlib import Path

from optimist.training.storage import checked_lines
from optimist.training.storage.run_folder import METRICS


class Jsonl:
    def __init__(self, folder: Path, seeds: tuple[int, ...] = (), step: int = 0):
        self._path = folder / METRICS

    def add(self, step: int, values: Mapping[str, float], seed: int) -> None:
        if "return" not in values:  # an evaluation: episodes.csv has every episode of it
            checked_lines.append(self._path, [json.dumps({"step": step, "seed": seed, **values}) + "\n"])

    def close(self) -> None:
        """Every line is in the file already."""
