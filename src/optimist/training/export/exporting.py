"""Writes a policy to a file, runs the file on logged observations, and compares the actions."""

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
from optimist.data.look import action_columns, feature_names
from optimist.data.sampling import Sampler, transitions
from optimist.data.transition import Spec
from optimist.errors import DataError, RunError, UsageError, some_of
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
SHOWN = 20  # names in a line
SAME_VALUE = 1e-5  # of the largest value: within it, rounding decides which of several candidates is the best
Action = Callable[..., Any]  # of one observation, and of a mask if the log has masks


@dataclass(frozen=True)
class Questions:
    """The arguments of each call as arrays, (n, ...): observations in the user's layout, and masks (n, A) of
    allowed actions if the log has them."""

    arguments: tuple[np.ndarray, ...]
    whose: str
    features: tuple[str, ...] = ()  # their names in order, if they are known
    action_columns: tuple[str, ...] = ()  # the same of the numbers of an action vector

    @property
    def types(self) -> list[tuple[tuple[int, ...], str]]:
        """The shape and the type of each argument of one call."""
        return [(array.shape[1:], array.dtype.name) for array in self.arguments]


def _questions(run: Run, data: Dataset | str | Path | None) -> Questions:
    """Up to CHECKED logged questions; random observations if the run's data cannot be opened."""
    spec = run.learner.spec
    try:
        dataset = run.log() if data is None else data if isinstance(data, Dataset) else Dataset.open(data)
    except DataError:
        if data is not None:
            raise
        return _random_questions(run)
    kinds = [(one.observation_shape, one.frame_dtype, one.actions) for one in (dataset.spec, spec)]
    if kinds[0] != kinds[1]:
        if data is None:
            return _random_questions(run)
        raise UsageError(
            f"the data has {dataset.spec.in_words()}, and this policy learned from {spec.in_words()}: name a "
            "log like the one that it learned from"
        )
    sampler = Sampler(dataset, min(CHECKED, len(dataset)))
    positions = sampler.positions(0, 1)[0]
    seen = transitions(sampler, positions, dataset.timeline.frames).observation
    masks = _random_masks(spec, len(seen)) if run.masked else ()
    if dataset.timeline.allowed is not None:
        masks = (dataset.timeline.allowed[dataset.steps()[positions]],)
    names = tuple(feature_names(dataset)), tuple(action_columns(dataset))
    return Questions((spec.in_users_layout(seen), *masks), "logged observations", *names)


def _random_questions(run: Run) -> Questions:
    spec = run.learner.spec
    random, shape = np.random.default_rng(0), (CHECKED // 10, *spec.observation_shape)
    drawn: Any = random.integers(0, 256, shape) if spec.frame_dtype == "uint8" else random.normal(size=shape)
    drawn = (drawn > 0 if spec.frame_dtype == "bool" else drawn).astype(spec.frame_dtype)
    masks = _random_masks(spec, len(drawn)) if run.masked else ()
    beside = " and masks" if masks else ""
    whose = f"random observations{beside}, because the log of {run.path} cannot be opened"
    return Questions((spec.in_users_layout(drawn), *masks), whose)


def _random_masks(spec: Spec, count: int) -> tuple[np.ndarray, ...]:
    """Masks that each allow at least one action."""
    random = np.random.default_rng(1)
    masks = random.random((count, spec.actions)) < 0.5
    masks[np.arange(count), random.integers(spec.actions, size=count)] = True
    return (masks,)


@dataclass(frozen=True)
class Exported:
    """A written file and the result of its check."""

    path: Path
    size: str
    observations: str  # which were checked
    facts: dict[str, Any]  # what the file says of itself
    checked: int = 0
    different: int = 0
    ties: int = 0  # other candidates than the policy's, with the same value

    def lines(self) -> list[str]:
        facts, takes = self.facts, []
        if len(facts["frame_shape"]) == 3:  # .onnx and .stablehlo need exactly this shape
            whole, frame = ("x".join(map(str, facts[f"{name}_shape"])) for name in ("observation", "frame"))
            stacked = f": {facts['stack']} frames of {frame}, oldest first" if facts["stack"] > 1 else ""
            takes.append(f"an observation is {whole} {facts['dtype']}{stacked}")
        if facts["features"]:
            frames = f" {facts['stack']} frames, oldest first, each" if facts["stack"] > 1 else ","
            takes.append(f"an observation is{frames} in this order: {', '.join(facts['features'])}")
        if facts["action_columns"]:
            takes.append(f"an action is, in this order: {', '.join(facts['action_columns'])}")
        if facts["takes_mask"]:
            names = some_of(list(map(str, facts["action_names"] or range(facts["actions"]))), SHOWN)
            takes.append(
                "the log has masks of allowed actions, so each call takes one beside the observation, in "
                f"this order: {names}"
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
    params, learner = run.params_of(chosen), run.learner

    def action(observation: Any, *mask: Any) -> Any:
        """The policy; one that draws random numbers gets the same ones each time."""
        return learner.action(params, learner.spec.arranged(observation), jax.random.PRNGKey(POLICY), *mask)

    questions = _questions(run, data)
    facts = _facts(run, chosen, questions)
    make_folder(path.parent)
    written: Action | str
    if path.suffix == ".stablehlo":
        size, written = _write_stablehlo(path, action, questions)
    else:
        program = trace(action, questions.types)
        size = size_in_words(program)
        written = (_write_npz if path.suffix == ".npz" else _write_onnx)(path, program, facts)
    if isinstance(written, str):  # the reason why the file cannot be run
        return Exported(path, size, written, facts)
    exported = Exported(path, size, questions.whose, facts)
    found, apart = _compare(learner.spec, action, written, questions.arguments)
    ties = int(_ties(run, params, questions.arguments[0][: len(found)][apart], found[apart]).sum())
    different = int(apart.sum()) - ties
    if different > CLOSE_CALLS * len(found):
        path.unlink()
        raise RunError(
            f"{path} was not kept: {different:,} of its {len(found):,} actions are not the "
            "policy's; try another format, and report this"
        )
    return replace(exported, checked=len(found), different=different, ties=ties)


def _facts(run: Run, seed: int, questions: Questions) -> dict[str, Any]:
    """What a file says of the policy; shapes are in the user's layout."""
    spec = run.learner.spec
    shapes = {"observation_shape": spec.observation_shape, "frame_shape": spec.frame_shape}
    if spec.channels_first:
        shapes = {name: (channels, *sides) for name, (*sides, channels) in shapes.items()}
    return {
        "agent": short_name(run.learner.agent),
        "step": run.step,
        "seed": seed,
        "environment": run.environment,
        "actions": spec.actions,
        "action_names": list(spec.action_names),
        "action_low": list(spec.action_low),
        "action_high": list(spec.action_high),
        **{name: list(shape) for name, shape in shapes.items()},
        "frames_axis": -3 if spec.channels_first else -1,
        "stack": spec.stack,
        "dtype": spec.frame_dtype,
        "features": list(questions.features),
        "action_columns": list(questions.action_columns),
        "takes_mask": len(questions.arguments) > 1,
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


def _write_stablehlo(path: Path, action: Action, questions: Questions) -> tuple[str, Action]:
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


def _ties(run: Run, params: dict, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Which of these actions are candidates with the highest value, if the agent chooses among candidates."""
    learner, choices = run.learner, getattr(run.learner.agent, "choices", None)
    if choices is None or not len(actions):
        return np.zeros(len(actions), bool)

    def known(observation: Any) -> Any:
        seen = learner.read(learner.spec.arranged(observation))
        return choices(learner.spec, params, seen, jax.random.PRNGKey(POLICY))

    candidates, values = map(np.asarray, jax.vmap(known)(jnp.asarray(observations)))
    is_it = (np.abs(candidates - actions[:, None]) <= _rounding(learner.spec)).all(axis=-1)
    lost = values.max(axis=1, keepdims=True) - values
    return (is_it & (lost <= SAME_VALUE * np.abs(values).max(axis=1, keepdims=True))).any(axis=1)
