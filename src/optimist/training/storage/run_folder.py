"""A run folder: the configuration, the results, the alarms, and the checkpoints to continue from."""

import contextlib
import logging
import math
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from optimist.data.disk.files import make_folder, naming, remove, write_whole
from optimist.data.disk.lock import FolderLock, HeldError
from optimist.data.disk.records import record, sealed, toml_table, unsealed
from optimist.errors import RunError, StorageError, in_one_line, some_of
from optimist.training.storage import checkpoint, rows
from optimist.training.storage.configuration import VERSIONS, changes, fingerprint, toml
from optimist.training.storage.rows import EPISODES, METRICS, EpisodeScore
from optimist.training.storage.selected import NAME as SELECTION

ALARMS = "alarms.json"  # the seeds that diverged
NAMED = 3  # runs that an error names; it counts the others
OTHER_USES = (  # contents of a folder, by a pattern of their names
    ("a dataset", "manifest.json"),
    ("a dataset", "steps-*.arrow"),
    ("a dataset", "frames-*.arrow"),
    ("a log", "$store$_*"),
    ("a study", "study.json"),
)
SHOWN = 5  # differences between two runs in a message
log = logging.getLogger("optimist")


class InUseError(RunError):
    """Another process uses the folder; it may be about to end."""


class RunFolder:
    """One run on disk, locked by one process at a time."""

    def __init__(self, path: str | Path, config: dict, *, restart: bool = False):
        self.path = Path(path)
        self.config, self.fingerprint = config, fingerprint(config)
        self.checkpoints = self.path / "checkpoints"
        refuse_log_or_study(self.path)
        make_folder(self.path)
        self._lock = FolderLock(self.path)  # it ends with the process
        try:
            died = self._lock.acquire()
        except HeldError as held:
            raise InUseError(
                f"{self.path} is in use by {held}: wait for it, or choose another --out"
            ) from None
        if died is not None:
            log.warning("taking over %s from %s, which no longer runs", self.path, in_one_line(died))
        try:
            if restart:
                self._forget()
            self._agree_on_config()
        except BaseException:
            self.release()
            raise

    def _forget(self) -> None:
        """Remove everything that this class writes, and nothing else."""
        for name in ("checkpoints", "diverged", checkpoint.POLICIES, "tensorboard", "loggers"):
            path = self.path / name
            try:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)  # of a link only the link, not its target
            except OSError as problem:
                raise StorageError(f"cannot remove {path}: {problem.strerror}; make it writable") from problem
        files = (METRICS, EPISODES, "config.toml", VERSIONS, ALARMS, SELECTION, "DONE")
        remove(*(self.path / name for name in files))

    def _agree_on_config(self) -> None:
        """Write the configuration; RunError if the folder has a run with another. More steps are allowed."""
        file = self.path / "config.toml"
        if not file.exists():  # only the checkpoints' fingerprints tell the configuration of the run
            if checkpoint.fingerprints(self.checkpoints) - {self.fingerprint}:
                raise RunError(
                    f"{self.path} has no config.toml, and its checkpoints have another fingerprint: "
                    "restore the file, choose another --out, or start again with --restart"
                )
        elif self.checkpoints.exists() and (changed := changes(read_config(self.path), self.config)):
            changed.sort(key=lambda line: line.startswith(("dataset.", "spec.")))  # settings come first
            raise RunError(
                f"{self.path} holds another run ({some_of(changed, SHOWN, '; ')}): "
                "choose another --out, or start again with --restart"
            )
        write_whole(file, toml(self.config).encode())

    def save_state(self, step: int, state: Any) -> None:
        """Save the rows first, so that a power cut cannot lose rows that are older than the checkpoint."""
        self._sync_rows()
        checkpoint.save_state(self.checkpoints, step, state, self.fingerprint)

    def load_state(self, like: Any) -> tuple[int, Any] | None:
        """The newest undamaged state of this configuration and its step, if one was saved."""
        found = checkpoint.load_state(self.checkpoints, like, self.fingerprint)
        training = self.config.get("training", {})
        # The last vector step of parallel lanes may exceed the number of steps.
        if found and found[0] >= training.get("steps", math.inf) + training.get("lanes", 1):
            raise RunError(
                f"{self.path} holds {found[0]:,} steps, more than the {training['steps']:,} requested: "
                "request as many, or start again with --restart"
            )
        return found

    def rewind(self, step: int) -> None:
        """Drop what was written after the checkpoint from which the run continues; it is written again."""
        (self.path / "DONE").unlink(missing_ok=True)
        for name in (METRICS, EPISODES):
            rows.rewind(self.path / name, step)
        try:
            alarms = read_alarms(self.path)
            write_alarms(self.path, {seed: alarm for seed, alarm in alarms.items() if alarm.step <= step})
        except RunError as problem:
            log.warning("%s", problem)

    def has_episodes(self, step: int) -> bool:
        """Was the state of this step evaluated?"""
        return rows.has_step(self.path / EPISODES, step)

    def add_episodes(self, played: list[EpisodeScore]) -> None:
        rows.append(self.path / EPISODES, rows.episode_lines(played))

    def _sync_rows(self) -> None:
        for name in (METRICS, EPISODES):
            rows.sync(self.path / name)

    def finish(self) -> None:
        """Say that the run is done. Its last evaluation may be newer than the last checkpoint."""
        self._sync_rows()
        write_whole(self.path / "DONE", b"")

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(OSError):
            self.release()


def is_done(path: Path) -> bool:
    """Did the run in this folder come to its end?"""
    return (path / "DONE").exists()


def begun(path: str | Path, *, restart: bool = False) -> dict:
    """The configuration of the run that will continue in this folder; empty if a new one will begin."""
    path = Path(path)
    if restart or not (path / "config.toml").exists() or not (path / "checkpoints").exists():
        return {}
    return read_config(path)


def read_config(path: Path) -> dict:
    """The resolved configuration of a run."""
    file = Path(path) / "config.toml"
    refuse_unless_run(Path(path))
    try:
        with naming(file):
            return toml_table(file.read_text(encoding="utf-8"))
    except ValueError as problem:  # not TOML, or not even text
        raise RunError(
            f"{file} cannot be read ({problem}): restore it, or start again with --restart"
        ) from problem


def refuse_unless_run(folder: Path) -> None:
    """Raise RunError for a folder without a run, with what it is instead."""
    if (folder / "config.toml").exists():
        return
    if (folder / "manifest.json").exists():
        raise RunError(
            f"{folder} is not a run folder, it is a dataset: name a run that learned from it (optimist train)"
        )
    inside = sorted(str(file.parent) for file in folder.glob("*/config.toml"))
    if inside:
        raise RunError(f"{folder} is no run, it holds some: name them, such as {some_of(inside, NAMED)}")
    problem = "has no config.toml" if folder.exists() else "does not exist"
    raise RunError(f"{folder} is not a run folder, it {problem}: name the --out of optimist train")


def refuse_log_or_study(path: Path) -> None:
    """Raise RunError for a folder that holds a log or a study: their files would be mixed with a run's."""
    for what, pattern in OTHER_USES:
        name = next((each.name for each in path.glob(pattern)), None)
        if name:
            raise RunError(
                f"{path} holds {what} ({name}), so a run cannot be written there: choose another --out"
            )


@dataclass(frozen=True)
class Alarm:
    """A seed that diverged."""

    step: int  # at which it was noticed
    healthy: int  # step of its last healthy policy
    value: float | None  # the size that 95 of 100 values did not exceed; none if it was not finite
    bound: float  # the largest size of a return-to-go in its log


def write_alarms(run: Path, alarms: dict[int, Alarm]) -> None:
    """Write the alarms of these seeds; without any there is no file."""
    if alarms:
        content = {str(seed): asdict(alarm) for seed, alarm in alarms.items()}
        write_whole(run / ALARMS, sealed(content).encode())
    else:
        remove(run / ALARMS)


def read_alarms(run: Path) -> dict[int, Alarm]:
    """The seeds that diverged."""
    file = Path(run) / ALARMS
    if not file.exists():
        return {}
    try:
        with naming(file):
            content = unsealed(file.read_bytes())
        return {int(seed): record(Alarm, row) for seed, row in content.items()}
    except ValueError as problem:
        raise RunError(
            f"{file} is damaged: restore it from a copy, or remove it and lose its warnings"
        ) from problem
