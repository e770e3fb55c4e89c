"""What was sent to a service outside the run folder, so that a continued run sends no row twice.

The file is in `loggers/` of the run folder, which --restart removes.
"""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from optimist.data.disk.files import TEMPORARY, make_folder, opened_beside
from optimist.data.disk.records import json_value, record, toml_table
from optimist.errors import StorageError

FOLDER = "loggers"


@dataclass
class Record:
    """The names of a run at one service, and the newest row of each seed there."""

    name: str = field(default_factory=lambda: secrets.token_hex(4))
    runs: dict[str, str] = field(default_factory=dict)  # by seed; for services that choose the name
    rows: dict[str, tuple[int, list[str]]] = field(default_factory=dict)  # by seed: its step and the figures


class Sent:
    """The record of one service, in a file that is written after each row."""

    def __init__(self, folder: Path, service: str):
        self._path = folder / FOLDER / f"{service}.json"
        self._record = self._read()
        self.name, self.runs = self._record.name, self._record.runs
        make_folder(self._path.parent)
        self.keep()

    def _read(self) -> Record:
        try:
            return record(Record, json_value(self._path.read_text("utf-8")))
        except (OSError, ValueError):  # there is none, or a power cut spoilt it: the service gets a new run
            return Record()

    def news(self, step: int, values: Mapping[str, float], seed: int) -> dict[str, float]:
        """The figures that the service does not have."""
        last, names = self._record.rows.get(str(seed), (-1, []))
        if step < last:
            return {}
        return {name: float(value) for name, value in values.items() if step > last or name not in names}

    def note(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """The service has these figures."""
        last, names = self._record.rows.get(str(seed), (-1, []))
        self._record.rows[str(seed)] = (step, [*(names if step == last else []), *values])
        self.keep()

    def keep(self) -> None:
        """Without a sync, which would cost more than the row: at worst a row is logged twice."""
        partial = self._path.with_name(self._path.name + TEMPORARY)
        try:
            with opened_beside(partial) as stream:
                stream.write(json.dumps(asdict(self._record)).encode())
            os.replace(partial, self._path)
        except OSError as problem:
            raise StorageError(f"cannot write {self._path}: {problem.strerror}; make room") from problem


def title(folder: Path) -> str:
    """The name of a run for people: the last two parts of its path, because the last may be equal for all."""
    return "/".join(folder.resolve().parts[-2:])


def configuration(folder: Path) -> dict[str, Any]:
    """The settings of config.toml as one table: {"agent.name": "rem"}; empty if there is none."""
    file = folder / "config.toml"
    return _flat(toml_table(file.read_text("utf-8"))) if file.exists() else {}


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found = {}
    for name, value in table.items():
        inner = isinstance(value, dict)
        found.update(_flat(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value})
    return found
