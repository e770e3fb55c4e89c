"""What was sent to a service outside the run folder, so that a continued run sends no row twice.

The file is in `loggers/` of the run folder, which --restart removes.
"""

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optimist.data.disk.files import TEMPORARY, make_folder, opened_beside
from optimist.data.disk.records import json_value, toml_table
from optimist.errors import StorageError
from optimist.training.values import fits

FOLDER = "loggers"


class Told:
    """The names of a run at one service, and the newest row of each seed there."""

    def __init__(self, folder: Path, service: str):
        self._path = folder / FOLDER / f"{service}.json"
        known = self._read()
        self.name: str = known.get("name") or secrets.token_hex(4)
        self.runs: dict[str, str] = known.get("runs") or {}  # by seed; for services that choose the name
        self._rows: dict[str, list] = known.get("rows") or {}  # by seed: its step and the names in it
        make_folder(self._path.parent)
        self.keep()

    def _read(self) -> dict[str, Any]:
        try:
            found = json_value(self._path.read_text("utf-8"))
        except (OSError, ValueError):  # there is none, or a power cut spoilt it
            found = {}
        return found if _is_told(found) else {}  # then the service gets a new run

    def news(self, step: int, values: Mapping[str, float], seed: int) -> dict[str, float]:
        """The figures that the service does not have."""
        last, names = self._rows.get(str(seed), (-1, []))
        if step < last:
            return {}
        return {name: float(value) for name, value in values.items() if step > last or name not in names}

    def note(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """The service has these figures."""
        last, names = self._rows.get(str(seed), (-1, []))
        self._rows[str(seed)] = [step, [*(names if step == last else []), *values]]
        self.keep()

    def keep(self) -> None:
        """Without a sync, which would cost more than the row: at worst a row is logged twice."""
        partial = self._path.with_name(self._path.name + TEMPORARY)
        try:
            with opened_beside(partial) as stream:
                stream.write(json.dumps({"name": self.name, "runs": self.runs, "rows": self._rows}).encode())
            os.replace(partial, self._path)
        except OSError as problem:
            raise StorageError(f"cannot write {self._path}: {problem.strerror}; make room") from problem


def _is_told(record: Any) -> bool:
    """Is this a record that `keep` writes? The folder may come from a stranger."""
    if not fits(record, dict[str, Any]) or not fits(record.get("runs", {}), dict[str, str]):
        return False
    name, rows = record.get("name", ""), record.get("rows", {})
    if not isinstance(name, str) or not fits(rows, dict[str, list[Any]]):
        return False
    return all(len(row) == 2 and fits(row[0], int) and fits(row[1], list[str]) for row in rows.values())


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
