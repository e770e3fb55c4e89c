"""Training states and policies: each is one safetensors file, written atomically, with its hash in its name.

Checkpoints are for continuing, and only the newest are kept; if the environment can be restored, a second
file has the state of play at the same step. Policies, the parameters of every seed at its evaluations, are
for choosing: the last one is often not the best.
"""

import contextlib
import hashlib
import json
import logging
import math
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
from optimist.errors import RunError, did_you_mean, in_one_line, some_of

HEADER = 2**20  # largest size of a file's names, types and shapes, in bytes
KEPT = 2  # the newest checkpoint, and one more in case it is damaged
HEALTH = "health/"  # names of what the guard against divergence knows; without a guard there are none
STEP, FINGERPRINT = "step", "configuration"  # in the file's metadata: which step of which run it is
FOREIGN = "was made with another configuration"
POLICIES = "policies"  # the folder in a run's folder
MOST = 1000  # policies of a run, however small they are
TYPES = {  # numpy's names and the file's, in the order in which the library writes arrays
    **{"uint64": "U64", "int64": "I64", "float64": "F64", "float32": "F32", "uint32": "U32", "int32": "I32"},
    **{"float16": "F16", "uint16": "U16", "int16": "I16"},
    **{"int8": "I8", "uint8": "U8", "bool": "BOOL"},
}
ALIGNMENT = 8  # bytes; the header is padded with spaces
Arrays = dict[str, np.ndarray]
log = logging.getLogger("optimist")


class Unusable(RunError):
    """The reason why a file is skipped."""


def save_state(folder: Path, step: int, state: Any, fingerprint: str = "") -> Path:
    """Write the state of this step, then remove all but the newest checkpoints. Later ones were skipped when
    the run was loaded; they stay until their steps are reached again.

    `fingerprint` is that of the run's configuration."""
    path = write(folder, step, state, fingerprint)
    older = [each for each in newest_first(folder) if step_of(each) < step]
    again = [each for each in folder.glob(f"step-{step:012d}-*") if each != path]
    useless = [each for each in [*older[KEPT - 1 :], *again] if not each.is_dir()]  # a folder is not ours
    remove(*useless, *folder.glob(f"*{TEMPORARY}"))
    return path


def write(folder: Path, step: int, tree: Any, fingerprint: str = "") -> Path:
    """Write a tree of arrays as the file of this step."""
    arrays = {name: np.asarray(leaf) for name, leaf in _named(jax.device_get(tree))}
    return _write(folder, "step", step, arrays, fingerprint)


def _write(folder: Path, kind: str, step: int, arrays: Arrays, fingerprint: str) -> Path:
    """Write the arrays as a file whose name ends with its hash. The hash is also that of the step and the
    fingerprint, so that a file is of no use under the name of another step, or in another run."""
    make_folder(folder)
    content = parts(arrays, {STEP: str(step), FINGERPRINT: fingerprint})
    path = folder / f"{kind}-{step:012d}-{_digest(*content)}.safetensors"
    with stored_whole(path, sum(map(len, content))) as stream:
        for part in content:
            stream.write(part)
    return path


def parts(arrays: Arrays, metadata: dict[str, str] | None = None) -> list[bytes | memoryview]:
    """The header, then each array without a copy; joined, they equal `safetensors.numpy.save`, which copies
    the arrays twice, and lets no other thread of the interpreter run meanwhile."""
    order = list(TYPES)
    names = sorted(arrays, key=lambda name: (order.index(arrays[name].dtype.name), name))
    header: dict[str, dict] = {"__metadata__": metadata} if metadata else {}
    content, place = list[bytes | memoryview](), 0
    for name in names:
        array = np.asarray(arrays[name], order="C")  # not ascontiguousarray: a scalar would become a vector
        end = place + array.nbytes
        kind = TYPES[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [place, end]}
        content.append(array.reshape(-1).view(np.uint8).data)
        place = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return [len(text).to_bytes(8, "little") + text, *content]


def load_state(folder: Path, like: Any, fingerprint: str = "") -> tuple[int, Any] | None:
    """The step and state of the newest usable checkpoint, with the shapes of `like`; None without a file.

    Files that are damaged, unreadable, of another step or of another shape are skipped with a warning. A file
    with another fingerprint raises RunError."""
    return _first(newest_first(folder), like, fingerprint)


def _first(paths: list[Path], like: Any, fingerprint: str) -> tuple[int, Any] | None:
    """The step and the tree of the first of these files that is usable."""
    reasons = []
    for path in paths:
        try:
            arrays, made_with = _opened(path, like)
            if fingerprint in ("", made_with):
                return step_of(path), _restored(arrays, like)
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


def save_play(folder: Path, step: int, arrays: Arrays, fingerprint: str = "") -> None:
    """Write the state of play. Call this before `save_state` of the same step, so that every checkpoint has
    its state of play."""
    _write(folder, "play", step, arrays, fingerprint)


def prune_play(folder: Path) -> None:
    """Remove the states of play whose checkpoints no longer exist."""
    kept = {step_of(path) for path in newest_first(folder)}
    remove(*(path for path in folder.glob("play-*.safetensors") if step_of(path) not in kept))


def load_play(folder: Path, step: int, fingerprint: str = "") -> Arrays | None:
    """The state of play of this step's checkpoint, if it exists and is undamaged."""
    for path in sorted(folder.glob(f"play-{step:012d}-*.safetensors")):
        if reason := damage(path, fingerprint):
            log.warning("%s %s: skipped", path, reason)
        else:
            return _opened(path)[0]
    return None


def load_health(folder: Path, step: int, like: Any) -> Any:
    """What the guard knew at this step; None if the file has none."""
    for path in (path for path in newest_first(folder) if step_of(path) == step):
        with contextlib.suppress(Unusable):
            arrays, _ = _opened(path)
            if any(name.startswith(HEALTH) for name in arrays):
                return _restored(arrays, {HEALTH.strip("/"): like}, health=True)["health"]
    return None


def fingerprints(folder: Path) -> set[str]:
    """The fingerprints of the undamaged checkpoints."""
    found = set()
    for path in newest_first(folder):
        with contextlib.suppress(Unusable):
            found.add(_opened(path)[1])
    return found


def damage(path: Path, fingerprint: str = "") -> str:
    """Why a file of the run with this fingerprint cannot be used, or "" if it is as it was written."""
    try:
        return "" if fingerprint in ("", _opened(path)[1]) else FOREIGN
    except Unusable as reason:
        return str(reason)


def _opened(path: Path, like: Any = None) -> tuple[Arrays, str]:
    """The arrays in a file, and the fingerprint of its run; Unusable if it is too large or its hash or step
    differs from that in its name."""
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
    try:
        (length,) = struct.unpack("<Q", content[:8])
        metadata = json.loads(content[8 : 8 + length])["__metadata__"]
        step, made_with = (str(metadata.get(name, "")) for name in (STEP, FINGERPRINT))
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        step, made_with = "", ""  # it says nothing of itself
    if step != str(step_of(path)):
        raise Unusable(f"is not a checkpoint of this step, it says step {in_one_line(step, 20) or 'nothing'}")
    try:
        return load(content), made_with
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as problem:
        reason = " ".join(str(problem).split())[:200]
        raise Unusable(f"is not a checkpoint ({reason})") from problem


def _restored(arrays: Arrays, like: Any, *, health: bool = False) -> Any:
    """The state in a file, or the health in it."""
    arrays = {name: array for name, array in arrays.items() if name.startswith(HEALTH) == health}
    wanted = {name: (leaf.shape, leaf.dtype) for name, leaf in _named(like)}
    if wanted != {name: (array.shape, array.dtype) for name, array in arrays.items()}:
        raise Unusable("holds another agent's parameters")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise Unusable("holds numbers that are not finite")
    leaves = jax.device_put([arrays[name] for name in wanted])
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _named(tree: Any) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves]


def newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def step_of(path: Path) -> int:
    """The step in the file's name; -1 if it is not the name of a checkpoint."""
    number = re.fullmatch(r"(?:step|play)-(\d{12,})-[0-9a-f]{32}", path.stem)
    return int(number[1]) if number else -1


def _digest(*content: bytes | memoryview) -> str:
    hashed = hashlib.sha256()
    for part in content:
        hashed.update(part)
    return hashed.hexdigest()[:32]


class Policies:
    """Keeps the policies of one run. If those of all evaluations need more than `keep_policies` GiB, every
    n-th is kept, for the smallest n that fits, and the last. So an interrupted run keeps the same ones."""

    def __init__(self, run: Path, settings: Any, params: Any, fingerprint: str = ""):
        self._folder, self._settings, self._fingerprint = run / POLICIES, settings, fingerprint
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(params))
        evaluations = math.ceil(settings.steps / settings.evaluate_every) if settings.evaluate_every else 0
        room = min(MOST, int(settings.keep_policies * 2**30 / max(size, 1)))
        self._nth = math.ceil(evaluations / (room - 1)) if room > 1 else 0  # one place is for the last
        if settings.keep_policies and evaluations and self._nth != 1:
            kept = f"one of {self._nth} evaluations" if self._nth else "no evaluation"
            limit, remedy = f"at most {MOST:,} policies are kept", ""
            if room < MOST:
                takes = f"a policy takes {size / 2**20:.1f} MiB"
                limit = f"{takes} and {settings.keep_policies:g} GiB are for policies"
                remedy = "; for more: --keep-policies GIB"
            log.warning("%s: that of %s is kept%s", limit, kept, remedy)

    def _wanted(self, step: int) -> bool:
        number = step // self._settings.evaluate_every
        return number % self._nth == 0 or step >= self._settings.steps

    def keep(self, step: int, params: Any) -> None:
        """Write the policy of this evaluation if it is one of those to keep."""
        if self._nth and self._wanted(step):
            write(self._folder, step, params, self._fingerprint)

    def rewind(self, step: int) -> None:
        """Remove the policies after this step, which come again, and those that no longer fit because the run
        was made longer."""
        if self._nth:
            steps = {path: step_of(path) for path in newest_first(self._folder)}
            remove(*(path for path, at in steps.items() if at > step or not self._wanted(at)))


def kept_steps(run: Path) -> list[int]:
    """The steps whose policies are kept, in order."""
    return sorted({step_of(path) for path in newest_first(run / POLICIES)} - {-1})


def load_policy(run: Path, step: int, like: Any, fingerprint: str = "") -> Any:
    """The parameters of every seed at this step."""
    found = _first(
        [path for path in newest_first(run / POLICIES) if step_of(path) == step], like, fingerprint
    )
    if found is None:
        known = [str(each) for each in kept_steps(run)]
        raise RunError(f"{run} keeps no policy of step {step:,}: {did_you_mean(str(step), known)}")
    return found[1]
