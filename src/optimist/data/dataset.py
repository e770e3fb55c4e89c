"""Datasets: recorded transitions, opened from a folder or made from arrays."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from optimist.data.disk import manifest as manifests
from optimist.data.disk.manifest import Manifest
from optimist.data.disk.reader import read_timeline
from optimist.data.intake import Intake, copy_into
from optimist.data.machine import with_home
from optimist.data.rules.checks import are_flags
from optimist.data.rules.joining import Joining, at_ends, if_known, joined, with_last_frame
from optimist.data.rules.log import Asked, Log
from optimist.data.rules.plan import Plan
from optimist.data.sampling import Sampler, transitions
from optimist.data.timeline import MemoryFrames, Timeline, decoded_stacks
from optimist.data.transition import Spec, Transition, number, whole_number
from optimist.data.views import View
from optimist.errors import DataError, in_one_line, log


class Dataset(View):
    """Recorded transitions, or a view of them.

    `len(data)` is their number, `data.batch(32)` samples some, `data.episodes[0]` is the first episode and
    iterates over its transitions, `data.observation(0)` is the input of a policy. `first`, `last`,
    `fraction`, `best` and `played_by` select a part without copying."""

    @staticmethod
    def open(path: str | Path) -> "Dataset":
        """Open a dataset folder: its steps are read and checked, its frames stay on disk."""
        folder = Path(with_home(path))
        manifest = manifests.read(folder)
        while True:
            try:
                timeline = read_timeline(folder, manifest)
                mark, origin = fingerprint_of(manifest), manifest.provenance
                return Dataset.whole(manifest.spec, timeline, mark, origin, folder)
            except DataError:  # a recording may have replaced its last shard since the manifest was read
                before, manifest = manifest, manifests.read(folder)
                if manifest == before:
                    raise

    @staticmethod
    def whole(
        spec: Spec, timeline: Timeline, fingerprint: str, provenance: dict[str, Any], path: Path | None = None
    ) -> "Dataset":
        """Every transition of a timeline."""
        starts = timeline.episode_starts
        stops = np.append(starts[1:], len(timeline))
        return Dataset(spec, timeline, starts, stops, fingerprint, provenance, path)

    @staticmethod
    def from_arrays(
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        terminals: ArrayLike,
        truncations: ArrayLike | None = None,
        *,
        next_observations: ArrayLike | None = None,
        episodes: ArrayLike | None = None,
        action_names: Sequence[int | str] | None = None,
        stack: int = 1,
        channels: Literal["first", "last"] | None = None,
        actions_count: int | None = None,
        action_low: ArrayLike | None = None,
        action_high: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        allowed_actions: ArrayLike | None = None,
        next_allowed_actions: ArrayLike | None = None,
        provenance: dict[str, Any] | None = None,
    ) -> "Dataset":
        """A dataset in memory from the rows of a log, in the order in which they happened.

        **Ends.** `terminals` marks the steps after which the game was over. Episodes also end by time limits,
        and terminals do not show those; one of three arguments does, and it is asked for unless every row is
        terminal. `truncations` marks the rows at which a time limit ended an episode; False means that every
        episode ends with a terminal step, True that every row is an episode of its own (shuffled
        transitions). `episodes` is a label for each row: where it changes, the episode ends.
        `next_observations` are the successors: at a row that is not marked as an end, the successor must be
        the observation of the next row.

        With next_observations every step is kept. Without them a terminal step gets a black final
        observation, which has no effect because its discount is zero. Where an episode is truncated, or the
        log ends, the successor of the last step is unknown: that step is dropped, and its observation becomes
        the final one of the episode.

        **Actions.** Whole numbers are discrete actions, `actions_count` of them, by default the largest plus
        one. Texts, negative numbers, numbers from 10,000 on, and numbers from 64 on of which fewer than half
        occur, are mapped to 0 to n - 1 in sorted order; the spec keeps them as `action_names`, and a policy
        answers with them. `action_names` may list all names in order, also those that do not occur. More than
        10,000 different actions are refused. Floats, and rows of several numbers, are vectors; their bounds
        are those of the data unless `action_low` and `action_high` are given. One whole-number float per row
        is a discrete action, unless bounds are given.

        **Observations.** (n, k) and (n,) are vectors; whole numbers are stored as float32. (n, h, w) uint8 or
        bool are images of one channel. (n, h, w, c) and (n, c, h, w) are told apart by `channels`, "last" or
        "first", which may be left out if one of the two axes is at most 4 and the other at least 8. A policy
        takes the layout that was given here. An observation is a stack of `stack` frames.

        **Optional.** `probabilities` are those with which the logging policy chose the logged actions.
        `allowed_actions`, (n, actions), are true for the actions that could be chosen. Those after a step are
        the ones of the next row, even if that row is dropped. With next_observations no row follows the last
        step of a truncated episode: `next_allowed_actions`, (n, actions), say what could be chosen there;
        without them its own allowed_actions stand for them.
        """
        every_row = truncations is True or truncations is np.True_
        no_row = truncations is False or truncations is np.False_
        asked = Asked(
            actions_count=None if actions_count is None else whole_number("actions_count", actions_count),
            action_names=None if action_names is None else tuple(action_names),
            stack=whole_number("stack", stack),
            channels=channels,
            every_end_is_terminal=no_row,
            action_low=action_low,
            action_high=action_high,
        )
        columns = {
            "observations": observations,
            "actions": actions,
            "rewards": rewards,
            "terminals": terminals,
            "truncations": None if no_row else np.equal(terminals, 0) if every_row else truncations,
            "next_observations": next_observations,
            "episodes": episodes,
            "probabilities": probabilities,
            "allowed_actions": allowed_actions,
            "next_allowed_actions": next_allowed_actions,
        }
        return _of_one_part(columns, asked, provenance or {})

    def save(self, folder: str | Path, append: bool = False) -> "Dataset":
        """Write these transitions into a new dataset folder and open it.

        With `append` they become new lanes of the dataset in the folder, if its spec is the same and they
        were not appended before, also not as the beginning of a log that has grown since. A view is saved as
        what it shows: where it cuts an episode, the saved episode is truncated, and frames from before the
        cut are black in later stacks. An interrupted save leaves a folder that cannot be opened, or, with
        `append`, the dataset as it was."""
        with Intake(folder, self.spec, provenance=self.provenance, append=append, source=self) as intake:
            copy_into(intake, self)
        return Dataset.open(folder)

    def action_name(self, action: int) -> int | str:
        """The user's own id of the action with this number, 0 to n - 1."""
        number = range(self.spec.actions)[action]  # IndexError beyond the last
        name: int | str = self.spec.named(number)
        return name

    def batch(
        self,
        size: int = 32,
        *,
        seed: int = 0,
        step: int = 0,
        gamma: float = 0.99,
        n_step: int = 1,
        clip: float | None = None,
    ) -> Transition:
        """The batch that training with this seed draws uniformly at this step: arrays with `size` rows,
        stacked observations as a network takes them, with the channels last. `clip` clips rewards to
        [-clip, clip]."""
        size, n_step = whole_number("size", size), whole_number("n_step", n_step)
        seed, step = whole_number("seed", seed), whole_number("step", step, least=0)
        gamma, clip = number("gamma", gamma), None if clip is None else number("clip", clip)
        sampler = Sampler(self, size, gamma, n_step, clip, seed)
        return transitions(sampler, sampler.positions(step, 1)[0], self.timeline.frames)

    def observation(self, position: int) -> np.ndarray:
        """The input of a policy at this step of the dataset: the stack of its frame and earlier ones, in the
        layout of the log."""
        at = range(len(self))[whole_number("position", position)]  # IndexError beyond the last
        rows = Sampler(self).rows(np.array([at]))
        stacks = decoded_stacks(self.timeline.frames, rows.frame, rows.age, self.spec.stack)
        return self.spec.in_users_layout(stacks)[0]

    def __repr__(self) -> str:
        episodes, source = self.episodes, self.timeline.source
        kept = source.frame_bytes + source.step_bytes
        size = f"{kept / 2**20:,.1f} MiB" if kept >= 2**20 else f"{kept / 2**10:,.1f} KiB"
        name = self.provenance.get("environment") or self.provenance.get("source")
        origin = f", from {in_one_line(name)}" if name else ""
        return (
            f"Dataset: {len(self):,} steps in {episodes!r}\n  {self.spec.in_words()}\n"
            f"  {size} {f'in {self.path}' if self.path else 'in memory'}{origin}"
        )


def open_dataset(path: str | Path) -> Dataset:
    """Open the dataset in a folder."""
    return Dataset.open(path)


def fingerprint_of(manifest: Manifest) -> str:
    """A hash that identifies a recording: over its spec and the hashes of all its files."""
    hashes = [[shard.steps.sha256, shard.frames.sha256] for shard in manifest.shards]
    record = json.dumps([manifest.spec.as_json(), hashes], sort_keys=True)
    return hashlib.sha256(record.encode()).hexdigest()


def _of_one_part(columns: dict[str, Any], asked: Asked, provenance: dict[str, Any]) -> Dataset:
    """The dataset of arrays, which are a log of one part with as many rows as there are observations."""
    part = {name: _array(name, values) for name, values in columns.items() if values is not None}
    count = len(part["observations"]) if part["observations"].ndim else 0
    for name, array in part.items():
        if array.shape[:1] != (count,):
            raise DataError(
                f"{name} are {array.shape} {array.dtype}: give {count} rows, one for each observation"
            )
    arrays = Log(part, lambda names: [{name: part[name] for name in names}], count, asked)
    plan = Plan.of(arrays)
    joining = Joining(plan.spec)
    pieces = [joining.add(rows) for rows in plan.parts(arrays)]
    if (last := joining.end()) is not None:
        pieces = with_last_frame(pieces, last)
    whole = joined(pieces)
    if not len(whole):
        raise DataError("no transition is left: give next_observations, or longer episodes")
    if joining.left_out.steps:
        log.warning("left out: %s; next_observations= keeps them", joining.left_out)
    timeline = Timeline(
        columns=if_known(at_ends(whole.steps, [-1])),
        actions=plan.spec.actions,
        lanes=np.zeros(1, np.int32),
        lane_starts=np.zeros(1, np.int64),
        clock=partial(np.arange, len(whole)),
        source=MemoryFrames(whole.frames),
    )
    digest = hashlib.sha256(json.dumps(plan.spec.as_json(), sort_keys=True).encode())
    for content in (whole.frames, *timeline.columns.values()):
        digest.update(np.ascontiguousarray(content).data)
    origin = joining.left_out.noted_in(provenance)
    return Dataset.whole(plan.spec, timeline, digest.hexdigest(), origin)


def _array(name: str, values: Any) -> np.ndarray:
    """The values as an array of numbers or texts; masks may be lists of names, or have a name for each
    column."""
    if name in ("allowed_actions", "next_allowed_actions"):
        return _masks(name, values)
    array = _even(name, values)
    if name in ("episodes", "actions") and array.shape[1:] == (1,):
        array = array[:, 0]
    if array.dtype.kind != "O":
        return array
    if name == "episodes":
        return array.astype(str)
    if name == "actions" and array.ndim == 1:
        return _alike(array)
    if name in ("observations", "next_observations") and array.ndim > 1 and array.size:
        return _numbers(name, array)
    return array


def _even(name: str, rows: Any) -> np.ndarray:
    """The rows as an array; DataError if they have different lengths, or if some are masked: a plain array
    would hold what is behind the mask."""
    if np.ma.is_masked(rows):
        raise DataError(f"{name} have masked values: fill them first, with numpy.ma.filled")
    try:
        return np.asarray(rows)
    except ValueError as problem:  # numpy calls it inhomogeneous
        raise DataError(f"{name} have rows of different lengths: give all of them the same") from problem


def _masks(name: str, values: Any) -> np.ndarray:
    """Lists of names as an array of lists, a data frame as one with named columns."""
    if hasattr(values, "to_records"):
        return values.to_records(index=False)
    has_objects = getattr(getattr(values, "dtype", None), "kind", "") == "O"
    lists = list(values) if has_objects or isinstance(values, list | tuple) else []
    if lists and all(isinstance(row, list | tuple) for row in lists) and not are_flags(lists):
        return np.fromiter(lists, object, len(lists))
    return _even(name, lists or values)


def _alike(array: np.ndarray) -> np.ndarray:
    """Actions that are texts, or numbers, in place of objects."""
    values = array.tolist()
    kinds = list(map(type, values))
    if any(set(kinds) <= alike for alike in ({str}, {int, bool}, {float, int})):
        return np.array(values)
    for row, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        if kind not in (str, int, float, bool) or value != value:
            raise DataError(f"the action in row {row} is {in_one_line(value)}: give a whole number or a name")
    raise DataError("actions are texts and numbers: give all of them as texts, or all as numbers")


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    """Objects as numbers: a data frame whose columns have several types, as floats and flags, is an array
    of objects. Texts are refused, although NumPy would read them as numbers."""
    flat = array.reshape(-1)
    wrong = [not issubclass(kind, (Real, np.bool_)) for kind in map(type, flat)]
    if any(wrong):
        first = wrong.index(True)
        row = first // (array.size // len(array))
        raise DataError(
            f"{name} hold {in_one_line(flat[first], 20)} in row {row}, which is no number: make columns of 0 "
            "and 1 of categories (pandas.get_dummies), and fill what is missing"
        )
    return array.astype(np.float64)
