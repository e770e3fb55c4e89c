"""Writes a policy to a file, runs the file on logged observations, and compares the actions."""

import functools
import importlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from optimist.agents import short_name
from optimist.data.dataset import Dataset
from optimist.data.disk.files import make_folder, stored_whole, write_whole
from optimist.data.transition import Spec
from optimist.errors import RunError, UsageError, some_of
from optimist.training.export import numpy_policy
from optimist.training.export.asked import Asked, asked
from optimist.training.export.numpy_policy import NumpyPolicy
from optimist.training.export.program import Program, size_in_words, trace
from optimist.training.play.acting import POLICY
from optimist.training.run import Run

SUFFIXES = (".npz", ".onnx", ".stablehlo")
CHECKED = 10_000  # logged observations, or as many as CHECK_SECONDS allow
CHECK_SECONDS = 20.0
ROUNDING = 1e-4  # of the largest action: allowed difference of action vectors
CLOSE_CALLS = 1e-3  # share of discrete actions that may differ: two values may be equal but for rounding
SHOWN = 20  # names in a line
SAME_VALUE = 1e-5  # of the largest value: within it, rounding decides which of several candidates is the best
Action = Callable[..., Any]  # of one observation, and of a mask if the log has masks


@dataclass(frozen=True)
class Exported:
    """A written file and the result of its check."""

    path: Path
    size: str
    observations: str  # which were checked
    checked: int
    different: int
    ties: int = 0  # other candidates than the policy's, with the same value
    image: str = ""  # its shape and type, if an observation is an image
    features: tuple[str, ...] = ()  # their names in order, if they are known
    action_columns: tuple[str, ...] = ()  # the names of the numbers of an action vector, if they are known
    masked: tuple[str, ...] = ()  # the actions of a mask in order, if it takes one
    stack: int = 1  # frames in an observation

    def lines(self) -> list[str]:
        takes = [f"an observation is {self.image}"] if self.image else []
        if self.features:
            frames = f" {self.stack} frames, oldest first, each" if self.stack > 1 else ","
            takes.append(f"an observation is{frames} in this order: {', '.join(self.features)}")
        if self.action_columns:
            takes.append(f"an action is, in this order: {', '.join(self.action_columns)}")
        if self.masked:
            takes.append(
                "the log has masks of allowed actions, so each call takes one beside the observation, in "
                f"this order: {some_of(self.masked, SHOWN)}"
            )
        if not self.checked:
            return [f"wrote {self.path} ({self.size})", *takes, f"not checked: {self.observations}"]
        equal = f"{self.checked - self.different:,} of {self.checked:,} actions are the policy's"
        equal += f", {self.ties:,} of them by another candidate of the same value" if self.ties else ""
        return [f"wrote {self.path} ({self.size})", *takes, f"checked on {self.observations}: {equal}"]


def export_policy(
    run: Run, to: str | Path, *, seed: int | None = None, data: Dataset | str | Path | None = None
) -> Exported:
    """Write the policy of one seed, the first by default, as .npz, .onnx or .stablehlo. Its actions are
    compared with the policy's on observations of `data`, by default the data of the run."""
    path = Path(to)
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path} has no known ending: choose one of policy{', policy'.join(SUFFIXES)}")
    chosen = run.seeds[0] if seed is None else seed
    action, spec = functools.partial(_action, run, run.params_of(chosen)), run.learner.spec
    questions = asked(run, data, CHECKED)
    facts = _facts(run, chosen, questions)
    make_folder(path.parent)
    written: Action | str
    if path.suffix == ".stablehlo":
        size, written = _write_stablehlo(path, action, questions)
    else:
        program = trace(action, questions.types)
        size = size_in_words(program)
        written = (_write_npz if path.suffix == ".npz" else _write_onnx)(path, program, facts)
    exported = Exported(
        path,
        size,
        questions.whose,
        checked=0,
        different=0,
        image=_image(spec),
        features=questions.features,
        action_columns=questions.action_columns,
        masked=_masked(spec, questions),
        stack=spec.stack,
    )
    if isinstance(written, str):  # the reason why the file cannot be run
        return replace(exported, observations=written)
    return _checked(exported, run, chosen, action, written, questions.arguments)


def _checked(
    exported: Exported,
    run: Run,
    seed: int,
    action: Action,
    written: Action,
    arguments: tuple[np.ndarray, ...],
) -> Exported:
    """The result of the comparison; RunError if other actions are too many, and the file is removed."""
    found, apart = _compare(run.learner.spec, action, written, arguments)
    ties = int(_ties(run, seed, arguments[0][: len(found)][apart], found[apart]).sum())
    different = int(apart.sum()) - ties
    if different > CLOSE_CALLS * len(found):
        exported.path.unlink()
        raise RunError(
            f"{exported.path} was not kept: {different:,} of its {len(found):,} actions are not the "
            "policy's; try another format, and report this"
        )
    return replace(exported, checked=len(found), different=different, ties=ties)


def _action(run: Run, params: dict, observation: Any, *mask: Any) -> Any:
    """The policy; one that draws random numbers gets the same ones each time."""
    learner, key = run.learner, jax.random.PRNGKey(POLICY)
    return learner.action(params, learner.spec.arranged(observation), key, *mask)


def _masked(spec: Spec, questions: Asked) -> tuple[str, ...]:
    """The actions in the order of a mask, if the policy takes one."""
    return tuple(map(str, spec.action_names or range(spec.actions))) if questions.has_masks else ()


def _layout(spec: Spec, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an observation or a frame in the user's layout."""
    return (shape[2], *shape[:2]) if spec.channels_first else shape


def _image(spec: Spec) -> str:
    """What the file takes, for images: the programs of .onnx and .stablehlo need exactly this shape."""
    if len(spec.frame_shape) != 3:
        return ""
    whole, frame = (
        "x".join(map(str, _layout(spec, each))) for each in (spec.observation_shape, spec.frame_shape)
    )
    stacked = f": {spec.stack} frames of {frame}, oldest first" if spec.stack > 1 else ""
    return f"{whole} {spec.frame_dtype}{stacked}"


def _facts(run: Run, seed: int, questions: Asked) -> dict[str, Any]:
    spec = run.learner.spec
    return {
        "agent": short_name(run.learner.agent),
        "step": run.step,
        "seed": seed,
        "environment": run.environment,
        "actions": spec.actions,
        "action_names": list(spec.action_names),
        "action_low": list(spec.action_low),
        "action_high": list(spec.action_high),
        "observation_shape": list(_layout(spec, spec.observation_shape)),
        "frame_shape": list(_layout(spec, spec.frame_shape)),
        "frames_axis": -3 if spec.channels_first else -1,
        "stack": spec.stack,
        "dtype": spec.frame_dtype,
        "features": list(questions.features),
        "action_columns": list(questions.action_columns),
        "takes_mask": questions.has_masks,
    }


def _write_npz(path: Path, program: Program, facts: dict[str, Any]) -> Action:
    record = {"facts": facts, "result": program.result, "operations": program.operations}
    arrays: dict[str, Any] = {f"c{number}": array for number, array in program.constants.items()}
    with stored_whole(path) as stream:
        np.savez(stream, program=json.dumps(record), **arrays)
    shutil.copyfile(numpy_policy.__file__, path.with_name("numpy_policy.py"))
    policy = NumpyPolicy(path)
    policy.facts["action_names"] = []  # compare numbers
    return policy


def _write_onnx(path: Path, program: Program, facts: dict[str, Any]) -> Action | str:
    try:
        onnx_file = importlib.import_module("optimist.training.export.onnx_file")
    except ImportError:
        raise UsageError("an .onnx file needs the package onnx: pip install 'optimist-rl[onnx]'") from None
    write_whole(path, onnx_file.content(program, facts))
    try:
        return onnx_file.runner(path)
    except ImportError:
        return "pip install onnxruntime, which runs the file"


def _write_stablehlo(path: Path, action: Action, questions: Asked) -> tuple[str, Action]:
    """The serialised program of `jax.export`, for a CPU or a GPU; it takes one observation."""
    shapes = [jax.ShapeDtypeStruct(*each) for each in questions.types]
    made = jax.export.export(jax.jit(action), platforms=("cpu", "cuda"))(*shapes)
    write_whole(path, bytes(made.serialize()))
    read = jax.export.deserialize(bytearray(path.read_bytes()))
    return f"{path.stat().st_size:,} bytes", jax.jit(read.call)


def _compare(
    spec: Spec, action: Action, written: Action, arguments: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """The actions of the file, of as many calls as there is time for, and which of them differ."""
    calls = zip(*arguments, strict=True)
    found = [written(*next(calls))]  # the first call may compile
    until = time.monotonic() + CHECK_SECONDS
    for call in calls:
        found.append(written(*call))
        if time.monotonic() > until:
            break
    actions = np.asarray(found)
    checked = [jnp.asarray(array[: len(found)]) for array in arguments]
    expected = np.asarray(jax.jit(jax.vmap(action))(*checked))
    if spec.discrete:
        return actions, actions.reshape(-1) != expected
    return actions, (np.abs(actions - expected) > _rounding(spec)).any(axis=-1)


def _rounding(spec: Spec) -> np.ndarray:
    reach = np.maximum(np.abs(spec.action_low), np.abs(spec.action_high))
    return ROUNDING * np.maximum(reach, 1e-9)


def _ties(run: Run, seed: int, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Which of these actions are candidates with the highest value, if the agent chooses among candidates."""
    learner, params = run.learner, run.params_of(seed)
    choices = getattr(learner.agent, "choices", None)
    if choices is None or not len(actions):
        return np.zeros(len(actions), bool)

    def known(observation: Any) -> Any:
        seen = learner.read(learner.spec.arranged(observation))
        return choices(learner.spec, params, seen, jax.random.PRNGKey(POLICY))

    candidates, values = map(np.asarray, jax.vmap(known)(jnp.asarray(observations)))
    is_it = (np.abs(candidates - actions[:, None]) <= _rounding(learner.spec)).all(axis=-1)
    lost = values.max(axis=1, keepdims=True) - values
    return (is_it & (lost <= SAME_VALUE * np.abs(values).max(axis=1, keepdims=True))).any(axis=1)
