"""A run folder: what was asked for, what happened, and how to go on from where it stopped."""

import contextlib
import dataclasses
import importlib.metadata
import json
import logging
import math
import os
import platform
import shutil
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from filelock import FileLock, Timeout

from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.errors import RunError, StorageError, UsageError
from optimist.training.evaluation import EpisodeScore
from optimist.training.storage import checked_lines as rows
from optimist.training.storage import checkpoint, episodes
from optimist.training.storage.configuration import changes, fingerprint, toml, updated

EPISODES, METRICS = "episodes.csv", "metrics.jsonl"
CHECK = "crc"  # of the alarms, beside them
ALARMS = "alarms.json"  # seed: from which step on its estimates were beyond any possible return
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
        grown = [self.path / name for name in (METRICS, EPISODES)]
        whole = [self.path / name for name in ("config.toml", "versions.json", ALARMS, "DONE")]
        remove(*map(rows.checks_of, grown), *grown, *whole)

    def _agree_on_config(self) -> None:
        """What was saved belongs to one configuration; only more steps may be asked of it later."""
        file = self.path / "config.toml"
        if not file.exists():
            self._refuse_checkpoints_of_others()
        elif self.checkpoints.exists():
            changed = changes(read_config(self.path), self.config)
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
        """The rows first: a checkpoint never counts on rows that a power cut can take away."""
        for name in (METRICS, EPISODES):
            rows.sync(self.path / name)
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
        rows.rewind(self.path / METRICS, step, comes_again=False)
        rows.rewind(self.path / EPISODES, step, comes_again=True)  # the state of this step can be evaluated
        try:
            if alarms := read_alarms(self.path):
                self.write_alarms({seed: since for seed, since in alarms.items() if since <= step})
        except RunError as problem:
            log.warning("%s", problem)

    def has_episodes(self, step: int) -> bool:
        """Was the state of this step evaluated?"""
        return rows.has_step(self.path / EPISODES, step)

    def write_alarms(self, alarms: dict[int, int]) -> None:
        write_whole(self.path / ALARMS, _alarms_text(alarms).encode())

    def alarms(self, largest: float) -> dict[int, int]:
        """Those on disk; where they are damaged, from the metrics once more: seeds whose estimate exceeded
        the largest credible one, and when first."""
        with contextlib.suppress(RunError):
            return read_alarms(self.path)
        found: dict[int, int] = {}
        for row in map(json.loads, rows.good_lines(self.path / METRICS)):
            if abs(row.get("estimate", 0)) > largest:
                found.setdefault(row["seed"], row["step"])
        self.write_alarms(found)
        return found

    def add_episodes(self, played: list[EpisodeScore]) -> None:
        file = self.path / EPISODES
        begun = file.exists() and file.stat().st_size > 0
        rows.append(file, [*([] if begun else [episodes.HEADER]), *episodes.lines(played)])

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
    """The resolved configuration of a run, in today's words."""
    file = Path(path) / "config.toml"
    if not file.exists():
        raise RunError(f"{path} is not a run folder: it has no config.toml")
    try:
        return updated(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValueError as problem:  # not TOML, or not even text
        raise RunError(
            f"{file} cannot be read ({problem}): restore it, or begin anew with --restart"
        ) from problem


def read_episodes(path: Path) -> list[EpisodeScore]:
    """All evaluation episodes of a run; none where it was never evaluated."""
    file = Path(path) / EPISODES
    columns = episodes.read(file) if file.exists() else episodes.NONE
    return [EpisodeScore(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def read_alarms(path: Path) -> dict[int, int]:
    """Seeds that seemed to diverge, and from which step on."""
    file = Path(path) / ALARMS
    if not file.exists():
        return {}
    try:
        text = file.read_text(encoding="utf-8")
        said = json.loads(text)
        alarms = {int(seed): step for seed, step in said.items() if seed != CHECK}
        whole = text == _alarms_text(alarms) if CHECK in said else _are_alarms(said)
    except (ValueError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise RunError(f"{file} is damaged: restore it from a copy, or remove it to go without its warnings")
    return alarms


def _are_alarms(said: dict) -> bool:
    """Without a check, as version 0.1.0 wrote them."""
    return all(seed.isdecimal() and type(step) is int for seed, step in said.items())


def _alarms_text(alarms: dict[int, int]) -> str:
    plain = json.dumps(alarms)
    return json.dumps({**alarms, CHECK: f"{zlib.crc32(plain.encode()):08x}"})


def write_episodes(path: Path, played: list[EpisodeScore]) -> None:
    """A file of evaluation episodes, one a row."""
    episodes.write(path, played)


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
    """A dataclass as a plain table; fields that are None are left out, as TOML has no null. So are loggers:
    the same run may be logged elsewhere."""
    table = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {name: value for name, value in table.items() if value is not None and name != "loggers"}
