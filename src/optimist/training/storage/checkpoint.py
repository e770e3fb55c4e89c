"""Checkpoints: a training state is one safetensors file, written atomically, with its hash in its name.

If the environment can be restored, a second file has the state of play at the same step.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import struct
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from optimist.data.disk.files import TEMPORARY, make_folder, remove, stored_whole
from optimist.errors import RunError, in_one_line, some_of
from optimist.training.storage.tensor_file import parts

HEADER = 2**20  # largest size of a file's names, types and shapes, in bytes
KEPT = 2  # the newest checkpoint, and one more in case it is damaged
HEALTH = "health/"  # names of what the guard against divergence knows; without a guard there are none
STEP, FINGERPRINT = "step", "configuration"  # in the file's metadata: which step of which run it is
FOREIGN = "was made with another configuration"
log = logging.getLogger("optimist")


class Unusable(RunError):
    """The reason why a file is skipped."""


def save_state(folder: Path, step: int, state: Any, fingerprint: str = "") -> Path:
    """Write the state of this step, then remove all but the newest checkpoints.

    `fingerprint` is that of the run's configuration."""
    path = write(folder, step, state, fingerprint)
    _prune(folder, path)
    return path


def write(folder: Path, step: int, tree: Any, fingerprint: str = "") -> Path:
    """Write a tree of arrays as the file of this step."""
    return _write(folder, "step", step, _named_arrays(tree), fingerprint)


def content(tree: Any) -> list[bytes | memoryview]:
    """The same bytes for another process, in parts; `from_content` reads them."""
    return parts(_named_arrays(tree))


def from_content(content: bytes, like: Any) -> Any:
    """The tree of these bytes, with the shapes of `like`."""
    return _restored(content, like, finite=False)


def _write(folder: Path, kind: str, step: int, arrays: dict[str, np.ndarray], fingerprint: str) -> Path:
    """Write the arrays as a file whose name ends with its hash. The hash is also that of the step and the
    fingerprint, so that a file is of no use under the name of another step, or in another run."""
    make_folder(folder)
    content = parts(arrays, {STEP: str(step), FINGERPRINT: fingerprint})
    path = folder / f"{kind}-{step:012d}-{_digest(*content)}.safetensors"
    with stored_whole(path, sum(map(len, content))) as stream:
        for part in content:
            stream.write(part)
    return path


def _prune(folder: Path, written: Path) -> None:
    """Remove all but the newest up to the written one. Later ones were skipped when the run was loaded; they
    stay until their steps are reached again."""
    older = [path for path in newest_first(folder) if step_of(path) < step_of(written)]
    again = [path for path in folder.glob(f"step-{step_of(written):012d}-*") if path != written]
    useless = [path for path in [*older[KEPT - 1 :], *again] if not path.is_dir()]  # a folder is not ours
    remove(*useless, *folder.glob(f"*{TEMPORARY}"))


def load_state(
    folder: Path, like: Any, fingerprint: str = "", *, finite: bool = True
) -> tuple[int, Any] | None:
    """The step and state of the newest usable checkpoint, with the shapes of `like`; None without a file.

    Files that are damaged, unreadable, of another step or of another shape are skipped with a warning. A file
    with another fingerprint raises RunError."""
    return load_first(newest_first(folder), like, fingerprint, finite=finite)


def load_first(
    paths: list[Path], like: Any, fingerprint: str = "", *, finite: bool = True
) -> tuple[int, Any] | None:
    """The step and the tree of the first of these files that is usable."""
    reasons = []
    for path in paths:
        try:
            content = _content(path, like)
            if _is_of(content, fingerprint):
                return step_of(path), _restored(content, like, finite)
        except Unusable as problem:
            log.warning("%s %s: skipped", path, problem)
            reasons.append(f"{path.name} {problem}")
            continue
        raise RunError(f"{path} {FOREIGN}: remove it, or start again with --restart")
    if reasons:
        shown = some_of(reasons, 1, "; ")
        folder = paths[0].parent
        raise RunError(f"no checkpoint in {folder} can be used ({shown}): start again with --restart")
    return None


def save_play(folder: Path, step: int, arrays: dict[str, np.ndarray], fingerprint: str = "") -> None:
    """Write the state of play. Call this before `save_state` of the same step, so that every checkpoint has
    its state of play."""
    _write(folder, "play", step, arrays, fingerprint)


def prune_play(folder: Path) -> None:
    """Remove the states of play whose checkpoints no longer exist."""
    kept = {step_of(path) for path in newest_first(folder)}
    remove(*(path for path in folder.glob("play-*.safetensors") if step_of(path) not in kept))


def load_play(folder: Path, step: int, fingerprint: str = "") -> dict[str, np.ndarray] | None:
    """The state of play of this step's checkpoint, if it exists and is undamaged."""
    for path in sorted(folder.glob(f"play-{step:012d}-*.safetensors")):
        if reason := damage(path, fingerprint):
            log.warning("%s %s: skipped", path, reason)
        else:
            return _arrays(_content(path))
    return None


def load_health(folder: Path, step: int, like: Any) -> Any:
    """What the guard knew at this step; None if the file has none."""
    for path in (path for path in newest_first(folder) if step_of(path) == step):
        with contextlib.suppress(Unusable):
            content = _content(path)
            if any(name.startswith(HEALTH) for name in _arrays(content)):
                return _restored(content, {HEALTH.strip("/"): like}, finite=True, health=True)["health"]
    return None


def fingerprints(folder: Path) -> set[str]:
    """The fingerprints of the undamaged checkpoints."""
    found = set()
    for path in newest_first(folder):
        with contextlib.suppress(Unusable):
            found.add(_said(_content(path), FINGERPRINT))
    return found


def _content(path: Path, like: Any = None) -> bytes:
    """The bytes of a file; Unusable if it is too large or its hash or step differs from that in its name."""
    # Twice: the health holds a copy of the parameters.
    largest = HEADER + 2 * sum(leaf.size * leaf.dtype.itemsize for _, leaf in _named(like))
    try:
        with open(path, "rb") as stream:
            if like is not None and os.fstat(stream.fileno()).st_size > largest:
                raise Unusable("is too large")
            content = stream.read()
    except OSError as problem:
        raise Unusable(f"cannot be read ({problem.strerror})") from problem
    if step_of(path) < 0 or not path.stem.endswith(_digest(content)):
        raise Unusable("is damaged")
    if (said := _said(content, STEP)) != str(step_of(path)):
        raise Unusable(f"is not a checkpoint of this step, it says step {in_one_line(said, 20) or 'nothing'}")
    return content


def _said(content: bytes, name: str) -> str:
    """What a file says of itself: its step, or the fingerprint of its run; "" if it says nothing."""
    try:
        (length,) = struct.unpack("<Q", content[:8])
        return str(json.loads(content[8 : 8 + length])["__metadata__"][name])
    except (struct.error, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _is_of(content: bytes, fingerprint: str) -> bool:
    """Is this a file of the run with this fingerprint? Without one any run will do."""
    return not fingerprint or _said(content, FINGERPRINT) == fingerprint


def damage(path: Path, fingerprint: str = "") -> str:
    """Why a file of this run cannot be used, or "" if it is as it was written."""
    try:
        content = _content(path)
        _arrays(content)
    except Unusable as reason:
        return str(reason)
    return "" if _is_of(content, fingerprint) else FOREIGN


def newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def step_of(path: Path) -> int:
    """The step in the file's name; -1 if it is not the name of a checkpoint."""
    found = re.fullmatch(r"(?:step|play)-(\d{12,})-[0-9a-f]{32}", path.stem)
    return int(found[1]) if found else -1


def _digest(*content: bytes | memoryview) -> str:
    hashed = hashlib.sha256()
    for part in content:
        hashed.update(part)
    return hashed.hexdigest()[:32]


def _named(state: Any) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves]


def _named_arrays(tree: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(leaf) for name, leaf in _named(jax.device_get(tree))}


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    try:
        return load(content)
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as problem:
        reason = " ".join(str(problem).split())[:200]
        raise Unusable(f"is not a checkpoint ({reason})") from problem


def _restored(content: bytes, like: Any, finite: bool, *, health: bool = False) -> Any:
    """The state in a file, or the health in it."""
    arrays = {n: array for n, array in _arrays(content).items() if n.startswith(HEALTH) == health}
    wanted = {name: (leaf.shape, leaf.dtype) for name, leaf in _named(like)}
    if wanted != {name: (array.shape, array.dtype) for name, array in arrays.items()}:
        raise Unusable("holds another agent's parameters")
    if finite and not all(np.isfinite(array).all() for array in arrays.values()):
        raise Unusable("holds numbers that are not finite")
    leaves = jax.device_put([arrays[name] for name in wanted])
    return jax.tree.unflatten(jax.tree.structure(like), leaves)
