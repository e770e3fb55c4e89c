"""What the campaigns damage: recordings of random play and checkpoints."""

import atexit
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from little import random_play
from optimist.data import Recorder, Spec
from optimist.training.storage.checkpoint import save_state

SPECS = (
    Spec((5,), "float32", actions=3),
    Spec((6, 5, 1), "uint8", actions=3, stack=4),
    Spec((4, 4, 2), "bool", actions=3),
)

UNTIL_EXIT = ExitStack()
atexit.register(UNTIL_EXIT.close)


def folder_until_exit(prefix: str) -> Path:
    """A folder that many cases read: it is removed with this process."""
    return Path(UNTIL_EXIT.enter_context(TemporaryDirectory(prefix=prefix)))


def recorded(folder: Path, spec: Spec, *, rows: int, shard_steps: int) -> Path:
    with Recorder(folder, spec, lanes=2, shard_steps=shard_steps) as recorder:
        for step in random_play(spec, rows=rows, lanes=2):
            recorder.add(*step)
    return folder


def state(step: int) -> dict:
    """The state of a run; every weight is the step."""
    return {"w": np.full(300, step, np.float32), "key": np.zeros(2, np.uint32), "step": np.int32(step)}


def two_checkpoints(folder: Path) -> Path:
    """The newer one of two checkpoints, of steps 1 and 2."""
    save_state(folder, 1, state(1))
    return save_state(folder, 2, state(2))
