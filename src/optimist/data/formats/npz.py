"""One .npz file of named arrays: observations, actions, rewards, terminals and others of from_arrays."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.files import stored_whole
from optimist.data.recorder import Recorder
from optimist.errors import DataError, did_you_mean, in_one_line

NEEDED = ("observations", "actions", "rewards", "terminals")
KNOWN = {**{name: name for name in (*NEEDED, "truncated", "next_observations")}, "timeouts": "truncated"}
STEPS_AT_ONCE = 4096


@dataclass(frozen=True)
class ReadOptions:
    """Facts that are not in the arrays."""

    environment: Annotated[str | None, "the environment, such as gym/CartPole-v1"] = None
    actions: Annotated[int | None, "number of discrete actions; none: the largest action + 1"] = None
    stack: Annotated[int, "frames in an observation"] = 1


@dataclass(frozen=True)
class WriteOptions:
    """No options: a view is written as it is."""


@dataclass(frozen=True)
class Counts:
    """The number of steps and episodes that were read or written."""

    steps: int
    episodes: int
    dropped: int = 0

    def lines(self) -> list[str]:
        lost = [f"left out: {self.dropped:,} last steps with an unknown successor"] if self.dropped else []
        return [f"{self.steps:,} steps in {self.episodes:,} episodes", *lost]


@dataclass(frozen=True)
class Report:
    """Every array in the file, and the problems."""

    problems: list[str]
    rows: list[tuple[str, str, str]]
    heads = ("array", "shape", "type")


def detect(address: str | Path) -> bool:
    return Path(address).suffix == ".npz" and Path(address).is_file()


def read(
    address: str | Path,
    out: str | Path,
    options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] | None = None,
) -> Counts:
    """Check the arrays like `Dataset.from_arrays`, and record them into a new folder."""
    found = arrays(address)
    log = _dataset(found, options)
    if Path(out).exists() and any(Path(out).iterdir()):
        raise DataError(f"{out} holds files; import into a new folder")
    provenance = {"environment": options.environment or "", "format": "npz", "source": Path(address).name}
    timeline = log.timeline
    with Recorder(out, log.spec, lanes=1, provenance=provenance) as recorder:
        for start in range(0, len(log), STEPS_AT_ONCE):
            steps = np.arange(start, min(start + STEPS_AT_ONCE, len(log)))
            frame = steps + timeline.episode_of(steps)
            before, after = timeline.frames(frame), timeline.frames(frame + 1)
            for row, step in enumerate(steps):
                here = slice(step, step + 1)
                recorder.add(
                    before[row, None],
                    timeline.action[here],
                    timeline.reward[here],
                    timeline.terminal[here],
                    timeline.truncated[here],
                    after[row, None],
                )
            if progress:
                progress(int(steps[-1]) + 1, len(log))
    return Counts(len(log), len(log.episodes), len(found["rewards"]) - len(log))


def write(
    dataset: Dataset,
    out: str | Path,
    options: WriteOptions = WriteOptions(),  # noqa: B008  (frozen)
) -> Counts:
    """Write one file, `out` or `out/log.npz`, which `read` imports without loss."""
    path = Path(out) if Path(out).suffix == ".npz" else Path(out) / "log.npz"
    if path.exists():
        raise DataError(f"{path} exists already; export to another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    timeline, steps = dataset.timeline, dataset.steps()
    frame = steps + timeline.episode_of(steps)
    truncated = timeline.truncated[steps]
    truncated[dataset.offsets[1:] - 1] |= ~timeline.terminal[dataset.stops - 1]  # a view may cut an episode
    with stored_whole(path) as stream:
        np.savez_compressed(
            stream,
            observations=timeline.frames(frame),
            actions=timeline.action[steps],
            rewards=timeline.reward[steps],
            terminals=timeline.terminal[steps],
            truncated=truncated,
            next_observations=timeline.frames(frame + 1),
        )
    return Counts(len(dataset), len(dataset.episodes))


def verify(address: str | Path) -> Report:
    """Report the problems that an import would raise."""
    try:
        found = arrays(address)
        problems = []
        rows = [(name, str(array.shape), str(array.dtype)) for name, array in found.items()]
        _dataset(found, ReadOptions())
    except DataError as problem:
        problems, rows = [str(problem)], []
    return Report(problems, rows)


def arrays(address: str | Path) -> dict[str, np.ndarray]:
    """The arrays in the file, named as the arguments of from_arrays."""
    try:
        with np.load(address, allow_pickle=False) as file:
            unknown = sorted(set(file.files) - set(KNOWN))
            if unknown:
                hint = did_you_mean(unknown[0], KNOWN)
                raise DataError(f'{address} holds an array "{in_one_line(unknown[0])}": {hint}')
            found = {KNOWN[name]: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, MemoryError, AttributeError, zipfile.BadZipFile) as problem:
        raise DataError(
            f"{address} is not a readable .npz file ({in_one_line(problem)}); save it again"
        ) from None
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise DataError(f'{address} lacks the array "{missing[0]}"; save it with that name')
    return found


def _dataset(found: dict[str, Any], options: ReadOptions) -> Dataset:
    return Dataset.from_arrays(**found, actions_count=options.actions, stack=options.stack)
