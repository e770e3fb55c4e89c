"""Writes a policy to a file, runs the file on logged observations, and compares the actions."""

import functools
import importlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from optimist.agents import short_name
from optimist.data.dataset import Dataset
from optimist.data.disk.files import make_folder, stored_whole, write_whole
from optimist.data.look import feature_names
from optimist.data.transition import Spec
from optimist.errors import DataError, RunError, UsageError
from optimist.training.export import numpy_policy
from optimist.training.export.numpy_policy import NumpyPolicy
from optimist.training.export.program import Program, size_in_words, trace
from optimist.training.play.acting import POLICY
from optimist.training.run import Run

SUFFIXES = (".npz", ".onnx", ".stablehlo")
CHECKED = 10_000  # logged observations, or as many as CHECK_SECONDS allow
CHECK_SECONDS = 20.0
ROUNDING = 1e-4  # of the largest action: allowed difference of action vectors
CLOSE_CALLS = 1e-3  # share of discrete actions that may differ: two values may be equal but for rounding
SAME_VALUE = 1e-5  # of the largest value: within it, rounding decides which of several candidates is the best
Action = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Exported:
    """A written file and the result of its check."""

    path: Path
    size: str
    observations: str  # which were checked
    checked: int
    different: int
    ties: int = 0  # other candidates than the policy's, with the same value
    features: tuple[str, ...] = ()  # their names in order, if they are known

    def lines(self) -> list[str]:
        takes = [f"an observation is, in this order: {', '.join(self.features)}"] if self.features else []
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
    action = functools.partial(_action, run, run.params_of(chosen))
    spec, log = run.learner.spec, _log(run, data)
    features = feature_names(log) if log else []
    facts = {**_facts(run, chosen), "features": features}
    make_folder(path.parent)
    written: Action | str
    if path.suffix == ".stablehlo":
        size, written = _write_stablehlo(path, action, spec)
    else:
        program = trace(action, _layout(spec, spec.observation_shape), spec.frame_dtype)
        size = size_in_words(program)
        written = (_write_npz if path.suffix == ".npz" else _write_onnx)(path, program, facts)
    if isinstance(written, str):  # the reason why the file cannot be run
        return Exported(path, size, written, 0, 0, features=tuple(features))
    observations, whose = _observations(run, log)
    observations = np.moveaxis(observations, -1, -3) if spec.channels_first else observations
    found, apart = _compare(spec, action, written, observations)
    checked, ties = len(found), int(_ties(run, chosen, observations[: len(found)][apart], found[apart]).sum())
    different = int(apart.sum()) - ties
    if different > CLOSE_CALLS * checked:
        path.unlink()
        raise RunError(
            f"{path} was not kept: {different:,} of its {checked:,} actions are not the policy's; "
            "try another format, and report this"
        )
    return Exported(path, size, whose, checked, different, ties, tuple(features))


def _action(run: Run, params: dict, observation: Any) -> Any:
    """The policy; one that draws random numbers gets the same ones each time."""
    learner = run.learner
    return learner.action(params, learner.spec.arranged(observation), jax.random.PRNGKey(POLICY))


def _layout(spec: Spec, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an observation or a frame in the user's layout."""
    return (shape[2], *shape[:2]) if spec.channels_first else shape


def _facts(run: Run, seed: int) -> dict[str, Any]:
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
    }


def _log(run: Run, data: Dataset | str | Path | None) -> Dataset | None:
    """The data to compare on, by default that of the run; None if the run's cannot be opened."""
    try:
        log = run.log() if data is None else data if isinstance(data, Dataset) else Dataset.open(data)
    except DataError:
        if data is not None:
            raise
        return None
    if log.spec.observation_shape == run.learner.spec.observation_shape:
        return log
    if data is not None:
        raise UsageError(f"{data} has observations of {log.spec.observation_shape}")
    return None


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


def _write_stablehlo(path: Path, action: Action, spec: Spec) -> tuple[str, Action]:
    """The serialised program of `jax.export`, for a CPU or a GPU; it takes one observation."""
    shape = jax.ShapeDtypeStruct(_layout(spec, spec.observation_shape), spec.frame_dtype)
    made = jax.export.export(jax.jit(action), platforms=("cpu", "cuda"))(shape)
    write_whole(path, bytes(made.serialize()))
    read = jax.export.deserialize(bytearray(path.read_bytes()))
    return f"{path.stat().st_size:,} bytes", jax.jit(read.call)


def _observations(run: Run, log: Dataset | None) -> tuple[np.ndarray, str]:
    """Observations to compare on, and whose they are."""
    if log:
        return log.batch(min(CHECKED, len(log))).observation, "logged observations"
    spec = run.learner.spec
    random, shape = np.random.default_rng(0), (CHECKED // 10, *spec.observation_shape)
    drawn = random.integers(0, 256, shape) if spec.frame_dtype == "uint8" else random.normal(size=shape)
    whose = f"random observations, because the log of {run.path} cannot be opened"
    return (drawn > 0 if spec.frame_dtype == "bool" else drawn).astype(spec.frame_dtype), whose


def _compare(
    spec: Spec, action: Action, written: Action, observations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The actions of the file, of as many observations as there is time for, and which of them differ."""
    found = [written(observations[0])]  # the first call may compile
    until = time.monotonic() + CHECK_SECONDS
    for observation in observations[1:]:
        found.append(written(observation))
        if time.monotonic() > until:
            break
    actions = np.asarray(found)
    expected = np.asarray(jax.jit(jax.vmap(action))(jnp.asarray(observations[: len(found)])))
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
