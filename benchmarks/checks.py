"""The cost of hashes and checks, as shares of the processor time of an import and of a training.

Clocks count the processor time within the functions that hash and check; they count their own reading too, so
the shares are upper limits. Training is counted without its compilation, but with the hashes of its first
use of each file, which a longer training does not repeat.
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
from optimist.data import Dataset, Spec, checking, intake
from optimist.data.disk import codec, files, reader
from optimist.training.offline import OfflineTraining
from optimist.training.offline_settings import Training

STEPS = int(os.environ.get("STEPS", 1_000_000))
FLOATS, PICTURES = Spec((17,), "float32", actions=6), Spec((84, 84, 1), "uint8", actions=6, stack=4)
HASHES = ((hashlib, "sha256"), (hashlib, "file_digest"))
OF_IMPORT = (*HASHES, (checking, "checked_rows"), (checking, "check_values"))
OF_TRAINING = (
    *HASHES,
    (reader, "check_length"),
    (reader, "checked_path"),
    (reader, "_check_values"),
    (codec.Decoder, "check_size"),
    (codec.Decoder, "check_finite"),
)


class Clock:
    """The processor time within some functions, of all threads."""

    def __init__(self) -> None:
        self.seconds = 0.0

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
                self.seconds += time.thread_time() - start

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


def import_shares(folder: Path, spec: Spec, count: int) -> tuple[float, float]:
    """The seconds of processor time of an import, and those of its hashes and checks."""
    log, clock = rows(spec, count), Clock()
    with clock.within(OF_IMPORT):
        start = time.process_time()
        with intake.Intake(folder, spec, shard_steps=max(1, count // 16)) as taken:
            taken.add(log)
        return time.process_time() - start, clock.seconds


def training_shares(folder: Path, agent: agents.Agent, updates: int) -> tuple[float, float]:
    """The same for opening a log and training on its compressed frames."""
    seconds, checks = [], []
    for steps in (1, updates):
        clock, settings = Clock(), {"batch": 32, "feed": "compressed", "keep_policies": 0.0}
        training = Training(steps=steps, evaluate_every=10**9, clip_rewards=1.0, **settings)
        with tempfile.TemporaryDirectory() as out, clock.within(OF_TRAINING):
            start = time.process_time()
            OfflineTraining(agent, Dataset.open(folder), training, out=Path(out) / "run").run()
            seconds.append(time.process_time() - start)
            checks.append(clock.seconds)
    return seconds[1] - seconds[0], checks[1]


def main() -> None:
    dqn = agents.preset("dqn")
    print(f"hashes and checks in {files.__name__} and {reader.__name__}, in seconds of processor time:")
    for name, spec, count, updates in (
        ("17 floats", FLOATS, STEPS, STEPS // 50),
        ("84x84 frames", PICTURES, STEPS // 50, STEPS // 10_000),
    ):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "log"
            whole, checks = import_shares(folder, spec, count)
            print(
                f"import of {count:,} steps of {name}: {checks:.2f} of {whole:.2f}, {checks / whole:.1%} "
                "(promised: at most 10%)",
                flush=True,
            )
            whole, checks = training_shares(folder, dqn, updates)
            print(
                f"{updates:,} updates of DQN from {name}: {checks:.2f} of {whole:.2f}, {checks / whole:.1%} "
                "(promised: at most 3%)",
                flush=True,
            )


if __name__ == "__main__":
    main()
