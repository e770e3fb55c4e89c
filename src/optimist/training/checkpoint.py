"""A training state on disk: one safetensors file, named with its own hash, whole or not there at all."""

import hashlib
import json
import logging
import struct
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from optimist.data.files import TEMPORARY, make_folder, remove, write_whole
from optimist.errors import RunError

KEPT = 2  # the newest, and one to fall back on
FINGERPRINT = "configuration"  # in the file's metadata
log = logging.getLogger("optimist")


def save_state(folder: Path, step: int, state: Any, fingerprint: str | None = None) -> Path:
    """Write the state of this step beside the older ones, then drop all but the newest few.

    The fingerprint is that of the configuration that made it."""
    make_folder(folder)
    # Not ascontiguousarray, which turns a scalar into a vector.
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in _named(jax.device_get(state))}
    content = save(arrays, {FINGERPRINT: fingerprint} if fingerprint else None)
    path = folder / f"step-{step:012d}-{_digest(content)}.safetensors"
    write_whole(path, content)
    remove(*_newest_first(folder)[KEPT:], *folder.glob(f"*{TEMPORARY}"))
    return path


def load_state(folder: Path, like: Any, fingerprint: str | None = None) -> tuple[int, Any] | None:
    """The newest undamaged state, shaped as `like`, and its step; None where none was ever saved.

    One that was made with another configuration than the fingerprint's is refused."""
    found = _newest_first(folder)
    for path in found:
        content = path.read_bytes()
        if path.stem.endswith(_digest(content)):
            state = _restored(path, content, like)
            made_with = _fingerprint(content)
            if fingerprint and made_with and made_with != fingerprint:
                raise RunError(
                    f"{path} was made with another configuration: remove it, or begin anew with --restart"
                )
            return _step(path), state
        log.warning("%s is damaged and passed over", path)
    if found:
        raise RunError(f"every checkpoint in {folder} is damaged: start again with --restart")
    return None


def fingerprints(folder: Path) -> set[str | None]:
    """What the undamaged checkpoints say of their configuration; None where one says nothing."""
    contents = [(path, path.read_bytes()) for path in _newest_first(folder)]
    return {_fingerprint(content) for path, content in contents if path.stem.endswith(_digest(content))}


def _fingerprint(content: bytes) -> str | None:
    """Of the configuration that made this file; files of version 0.1.0 have none."""
    try:
        (length,) = struct.unpack("<Q", content[:8])
        return json.loads(content[8 : 8 + length])["__metadata__"][FINGERPRINT]
    except (struct.error, ValueError, KeyError, TypeError):
        return None


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def _step(path: Path) -> int:
    return int(path.stem.split("-")[1])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _named(state: Any) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves]


def _restored(path: Path, content: bytes, like: Any) -> Any:
    try:
        arrays = load(content)
    except SafetensorError as problem:
        raise RunError(f"{path} is not a checkpoint ({problem}): remove it") from problem
    wanted = {name: leaf.shape for name, leaf in _named(like)}
    if wanted != {name: array.shape for name, array in arrays.items()}:
        raise RunError(f"{path} holds another agent's parameters: give this run a folder of its own")
    leaves = [arrays[name] for name in wanted]
    return jax.tree.unflatten(jax.tree.structure(like), map(jax.numpy.asarray, leaves))
