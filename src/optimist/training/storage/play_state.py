"""Where play stood at a checkpoint: a safetensors file beside it, for environments that can be restored."""

import hashlib
import logging
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from optimist.data.disk.files import make_folder, remove, write_whole

log = logging.getLogger("optimist")


def save_play(folder: Path, step: int, arrays: dict[str, np.ndarray]) -> None:
    """Write it before the checkpoint of the same step: a checkpoint that is there has its play."""
    make_folder(folder)
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    write_whole(folder / f"play-{step:012d}-{_digest(content)}.safetensors", content)


def prune(folder: Path) -> None:
    """Remove what belongs to no checkpoint any more."""
    kept = {path.name.split("-")[1] for path in folder.glob("step-*.safetensors")}
    remove(*(path for path in folder.glob("play-*.safetensors") if path.name.split("-")[1] not in kept))


def load_play(folder: Path, step: int) -> dict[str, np.ndarray] | None:
    """What was saved with the checkpoint of this step, if it is there and undamaged."""
    for path in sorted(folder.glob(f"play-{step:012d}-*.safetensors")):
        content = path.read_bytes()
        if path.stem.endswith(_digest(content)):
            try:
                return load(content)
            except (SafetensorError, ValueError) as problem:
                log.warning("%s cannot be read (%s) and is passed over", path, problem)
                continue
        log.warning("%s is damaged and passed over", path)
    return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
