"""The cost of hashes and checks, as shares of the processor time of an import and of a training.

Clocks count the processor time within the functions that hash and check, and their own, so the shares are
upper limits. Updates are counted without compilation and without what is done once, which is told beside.
"""

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from optimist import agents
from optimist.data import Dataset, Spec, formats, intake, open_dataset
from optimist.data.disk import codec, reader
from optimist.data.rules import joining
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training

STEPS = int(os.environ.get("STEPS", 1_000_000))
FLOATS, PICTURES = Spec((17,), "float32", actions=6), Spec((84, 84, 1), "uint8", actions=6, stack=4)
HASHES = ((hashlib, "sha256"), (hashlib, "file_digest"))
OF_IMPORT = (*HASHES, (joining, "checked_rows"), (joining, "check_values"))
OF_TRAINING = (*HASHES, (reader, "check_length"), (reader, "check_hash"), (codec.Decoder, "check"))


class Clock:
    """The processor time within some functions, of all threads."""

    def __init__(self) -> None:
        self._spent: list[float] = []  # threads may append at the same time

    @property
    def seconds(self) -> float:
        return sum(self._spent)

    @contextlib.contextmanager
    def within(self, functions) -> Iterator[None]:
        before = [(place, name, getattr(place, name)) for place, name in functions]
        for place, name, function in before:
            setattr(place, name, self._counted(function))
        try:
            yield
        finally:
            for place, name, function in before:
                setattr(place, name, function)

    def _counted(self, function):
        def counted(*words, **named):
            start = time.thread_time()
            try:
                return function(*words, **named)
            finally:
                self._spent.append(time.thread_time() - start)

        return counted


def rows(spec: Spec, count: int) -> dict[str, np.ndarray]:
    """A log; a bright square moves over dark pictures."""
    random = np.random.default_rng(0)
    if spec is FLOATS:
        observations = random.normal(size=(count + 1, 17)).astype(np.float32)
    else:
        observations = np.zeros((count + 1, *spec.frame_shape), np.uint8)
        for picture, (row, column) in zip(observations, random.integers(0, 70, (count + 1, 2)), strict=True):
            picture[row : row + 14, column : column + 14] = random.integers(100, 255, (14, 14, 1))
    ends = np.arange(count) % 500 == 499
    return {
        "observations": observations[:-1],
        "actions": random.integers(0, spec.actions, count),
        "rewards": random.normal(size=count).astype(np.float32),
        "terminals": ends & (np.arange(count) % 1000 == 999),
        "truncations": ends,
        "next_observations": observations[1:],
    }


def logged(folder: Path, spec: Spec, count: int) -> Path:
    """The log as others have it: a Parquet table of floats, or gzipped frames of the DQN Replay Dataset."""
    with intake.Intake(folder / "recording", spec) as taken:
        taken.add(rows(spec, count))
    name, options = ("parquet", {}) if spec is FLOATS else ("dqn-replay", {"capacity": count})
    path, found = folder / ("log.parquet" if spec is FLOATS else "logs"), formats.find(name)
    found.write(open_dataset(folder / "recording"), path, found.WriteOptions(**options))
    return path


def imported(log: Path, out: Path) -> tuple[float, float]:
    """The seconds of processor time of an import, and those of its hashes and checks."""
    clock, found = Clock(), formats.find("parquet" if log.is_file() else "dqn-replay")
    with clock.within(OF_IMPORT):
        start = time.process_time()
        found.read(log, out, found.ReadOptions(), None)
        return time.process_time() - start, clock.seconds


def trained(folder: Path, updates: int) -> tuple[float, float]:
    """The same for opening a log and training on its compressed frames."""
    clock = Clock()
    settings = {"batch": 32, "feed": "compressed", "keep_policies": 0.0, "clip_rewards": 1.0, "hold_out": 0.0}
    training = Training(steps=updates, evaluate_every=10**9, **settings)
    with tempfile.TemporaryDirectory() as out, clock.within(OF_TRAINING):
        start = time.process_time()
        OfflineTraining(agents.preset("dqn"), Dataset.open(folder), training, out=Path(out) / "run").run()
        return time.process_time() - start, clock.seconds


def told(work: str, whole: float, checks: float, promised: int) -> None:
    share = f"{checks:.3g} of {whole:.3g} s of processor time, {checks / whole:.2%}"
    print(f"{work}: hashes and checks take {share} (promised: at most {promised}%)", flush=True)


def main() -> None:
    logs = {
        "17 floats": (FLOATS, STEPS, STEPS // 100),
        "84x84 frames": (PICTURES, STEPS // 50, STEPS // 20_000),
    }
    for name, (spec, count, updates) in logs.items():
        with tempfile.TemporaryDirectory() as place:
            folder, log = Path(place) / "imported", logged(Path(place), spec, count)
            told(f"import of {count:,} steps of {name}", *imported(log, folder), 10)
            trained(folder, 1)  # programs are compiled
            (short, once), (long, checks) = trained(folder, 1), trained(folder, 1 + updates)
            told(f"{updates:,} updates of DQN from {name}", long - short, checks - once, 3)
            print(f"  before, once: hashes and checks of the whole log take {once:.3g} s")


if __name__ == "__main__":
    main()
