"""A run folder: what was asked for, what happened, and how to go on from where it stopped."""

import contextlib
import csv
import dataclasses
import hashlib
import importlib.metadata
import json
import logging
import math
import os
import platform
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from filelock import FileLock, Timeout

from optimist.data.files import make_folder, remove, write_whole
from optimist.errors import RunError, StorageError, UsageError
from optimist.training import checkpoint
from optimist.training.evaluation import EpisodeScore

EPISODE_COLUMNS = ["step", "seed", "episode", "return", "length"]
ALARMS = "alarms.json"  # seed: from which step on its estimates were beyond any possible return
# No result depends on these: more steps go on from fewer, and every home gives the same batches. (Whether the
# data is the same is said by dataset.fingerprint, not by its path.)
MAY_CHANGE = {"dataset.path"} | {
    f"training.{name}" for name in ("steps", "checkpoint_seconds", "home", "memory_gib")
}
PACKAGES = ("optimist", "jax", "jaxlib", "optax", "numpy", "pyarrow", "zstandard")
log = logging.getLogger("optimist")


class InUseError(RunError):
    """Another process holds the folder; it may be about to leave."""


class RunFolder:
    """One run on disk, held by one process at a time."""

    def __init__(self, path: str | Path, config: dict, *, restart: bool = False):
        self.path = Path(path)
        self.config = config
        make_folder(self.path)
        self._hold()
        try:
            if restart:
                self._forget()
            self._agree_on_config()
        except BaseException:
            self.release()
            raise

    def _hold(self) -> None:
        """A lock that dies with its process; a second run is refused at once and told who has it."""
        holder = self.path / ".holder"
        self._lock = FileLock(self.path / ".lock", timeout=0)
        try:
            self._lock.acquire()
        except Timeout:
            who = holder.read_text() if holder.exists() else "another process"
            raise InUseError(
                f"{self.path} is in use by {who}: wait for it, or choose another --out"
            ) from None
        except OSError as problem:
            raise StorageError(f"cannot write in {self.path}: {problem.strerror}") from problem
        if holder.exists():
            log.warning("taking over %s from %s, which is gone", self.path, holder.read_text())
        write_whole(holder, f"process {os.getpid()} on {platform.node()}".encode())

    def _forget(self) -> None:
        """Begin anew: everything this class writes goes, and nothing else."""
        for name in ("checkpoints", "diverged", "tensorboard"):
            _remove_tree(self.path / name)
        names = ("config.toml", "versions.json", "metrics.jsonl", "episodes.csv", ALARMS, "DONE")
        remove(*(self.path / name for name in names))

    def _agree_on_config(self) -> None:
        """What was saved belongs to one configuration; only more steps may be asked of it later."""
        file = self.path / "config.toml"
        if not file.exists():
            self._refuse_checkpoints_of_others()
        elif self.checkpoints.exists():
            before = read_config(self.path)
            changed = [
                f"{name}: {old!r} there, {new!r} asked"
                for name, old, new in _differences(before, self.config)
                if not (name == "training.steps" and old and new > old)
                and name != "dataset.path"  # its fingerprint says whether it is the same data
            ]
            if changed:
                raise RunError(
                    f"{self.path} holds another run ({'; '.join(changed)}): "
                    "choose another --out, or begin anew with --restart"
                )
        write_whole(file, toml(self.config).encode())

    def _refuse_checkpoints_of_others(self) -> None:
        """Without config.toml only the checkpoints themselves say what they were made with."""
        if checkpoint.fingerprints(self.checkpoints) - {self.fingerprint}:
            raise RunError(
                f"{self.path} has lost its config.toml, and its checkpoints were not made with this "
                "configuration or do not say: restore it, choose another --out, or begin anew with --restart"
            )

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.config)

    def save_state(self, step: int, state: Any) -> None:
        checkpoint.save_state(self.checkpoints, step, state, self.fingerprint)

    def load_state(self, like: Any) -> tuple[int, Any] | None:
        """The newest undamaged state of this configuration and its step, if one was saved."""
        found = checkpoint.load_state(self.checkpoints, like, self.fingerprint)
        training = self.config.get("training", {})
        # Parallel lanes may pass the last step by a part of a vector step.
        if found and found[0] >= training.get("steps", math.inf) + training.get("lanes", 1):
            raise RunError(
                f"{self.path} holds {found[0]:,} steps where {training['steps']:,} are asked: "
                "ask for as many, or begin anew with --restart"
            )
        return found

    def record_versions(self, more: dict) -> None:
        write_whole(self.path / "versions.json", json.dumps({**versions(), **more}, indent=2).encode())

    def rewind(self, step: int) -> None:
        """Drop what was written after the checkpoint that the run goes on from: it will be written again."""
        (self.path / "DONE").unlink(missing_ok=True)
        for name, step_of in (("metrics.jsonl", _json_step), ("episodes.csv", _csv_step)):
            file = self.path / name
            if file.exists():
                lines = file.read_text().splitlines(keepends=True)
                whole = [line for line in lines if line.endswith("\n")]  # a kill may cut off the last one
                kept = [line for line in whole if step_of(line) <= step]
                write_whole(file, "".join(kept).encode())
        if alarms := read_alarms(self.path):
            self.write_alarms({seed: since for seed, since in alarms.items() if since <= step})

    def write_alarms(self, alarms: dict[int, int]) -> None:
        write_whole(self.path / ALARMS, json.dumps(alarms).encode())

    def add_metrics(self, rows: list[dict]) -> None:
        self._append("metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def add_episodes(self, rows: list[EpisodeScore]) -> None:
        text = csv_text(rows)
        file = self.path / "episodes.csv"
        begun = file.exists() and file.stat().st_size > 0
        self._append("episodes.csv", text.partition("\n")[2] if begun else text)

    def _append(self, name: str, text: str) -> None:
        try:
            with open(self.path / name, "a") as stream:
                stream.write(text)
        except OSError as problem:
            raise StorageError(
                f"cannot write {self.path / name}: {problem.strerror}; make room and run again"
            ) from problem

    def finish(self) -> None:
        write_whole(self.path / "DONE", b"")

    def release(self) -> None:
        (self.path / ".holder").unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(OSError):
            self.release()


def fingerprint(config: dict) -> str:
    """A hash of every value that results depend on, the same before and after a way through config.toml."""
    read_back = tomllib.loads(toml(config))
    bound = {
        name: {key: value for key, value in table.items() if f"{name}.{key}" not in MAY_CHANGE}
        if isinstance(table, dict)
        else table
        for name, table in read_back.items()
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def _remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it; of a link the link alone, never what it points to."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as problem:
        raise StorageError(f"cannot remove {path}: {problem.strerror}; make it writable") from problem


def read_config(path: Path) -> dict:
    """The resolved configuration of a run."""
    file = Path(path) / "config.toml"
    if not file.exists():
        raise RunError(f"{path} is not a run folder: it has no config.toml")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as problem:  # not TOML, or not even text
        raise RunError(
            f"{file} cannot be read ({problem}): restore it, or begin anew with --restart"
        ) from problem


def read_episodes(path: Path) -> list[EpisodeScore]:
    """All evaluation episodes of a run; none where it was never evaluated."""
    file = Path(path) / "episodes.csv"
    if not file.exists():
        return []
    with open(file) as stream:
        rows = [tuple(row.values()) for row in csv.DictReader(stream)]
    return [EpisodeScore(int(r[0]), int(r[1]), int(r[2]), float(r[3]), int(r[4])) for r in rows]


def read_alarms(path: Path) -> dict[int, int]:
    """Seeds that seemed to diverge, and from which step on."""
    file = Path(path) / ALARMS
    if not file.exists():
        return {}
    return {int(seed): step for seed, step in json.loads(file.read_text()).items()}


def write_episodes(path: Path, rows: list[EpisodeScore]) -> None:
    """A file of evaluation episodes, one a row."""
    write_whole(path, csv_text(rows).encode())


def csv_text(rows: list[EpisodeScore]) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in (EPISODE_COLUMNS, *rows))


def versions() -> dict:
    """What produced a result: packages, Python and the device."""
    installed = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        **installed,
        "device": device.device_kind,
        "platform": device.platform,
    }


def demand(record, names: tuple[str, ...], holds: Callable[[Any], bool], rule: str) -> None:
    """Refuse values that make no sense, before anything is written; None is the absence of one."""
    for name in names:
        value = getattr(record, name)
        if value is not None and not holds(value):
            raise UsageError(f"{name} is {value}: {rule}")


def as_config(record) -> dict:
    """A dataclass as a plain table; fields that are None are left out, as TOML has no null."""
    table = dataclasses.asdict(record)
    return {name: value for name, value in table.items() if value is not None}


def toml(table: dict, prefix: str = "") -> str:
    """Nested tables of plain values as TOML text (the standard library only reads it)."""
    lines = [f"{name} = {_toml_value(value)}" for name, value in table.items() if not isinstance(value, dict)]
    for name, value in table.items():
        if isinstance(value, dict):
            lines += ["", f"[{prefix}{name}]", toml(value, f"{prefix}{name}.").strip("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def _toml_value(value) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    plain = isinstance(value, (str, bool, int))
    return json.dumps(value, ensure_ascii=False) if plain else repr(float(value))


def _differences(before: dict, after: dict, prefix: str = ""):
    """(name, old, new) of every value that differs, names dotted."""
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{prefix}{name}.")
        elif old != (list(new) if isinstance(new, tuple) else new):
            yield f"{prefix}{name}", old, new


def _json_step(line: str) -> int:
    return json.loads(line)["step"]


def _csv_step(line: str) -> int:
    first = line.split(",")[0]
    return 0 if first == EPISODE_COLUMNS[0] else int(first)
