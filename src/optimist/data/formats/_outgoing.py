"""A dataset, or a view, on its way out: its steps in time order as parts of plain arrays."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.appending import ACTION_COLUMNS, FEATURES
from optimist.data.look import action_columns, feature_names
from optimist.data.timeline import Masks
from optimist.data.transition import Spec
from optimist.data.views import episodes_in_words
from optimist.errors import DataError, in_one_line

BYTES_AT_ONCE = 2**25  # of observations
MOST_ROWS = 2**18

Part = dict[str, np.ndarray]
WRITTEN = ("observations", "actions", "rewards", "terminals", "truncations", "next_observations")
OPTIONAL = ("probabilities", "allowed_actions", "next_allowed_actions")
COLUMNS = (*WRITTEN, "episodes", *OPTIONAL)
NUMBERED = "actions are numbers from 0 on, in the order of their names"


@dataclass(frozen=True)
class Written:
    """The number of steps and episodes that were written, and what the format could not hold."""

    steps: int
    episodes: int
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        notes = [f"note: {note}" for note in self.notes]
        return [f"{self.steps:,} steps in {episodes_in_words(self.episodes)}", *notes]


def written(dataset: Dataset, *notes: str) -> Written:
    """The summary, with a line about the episodes that have no end."""
    cut = int((~(dataset.episodes.terminal | dataset.episodes.truncated)[:-1]).sum())
    marked = (f"marked as truncated: {episodes_in_words(cut)} without an end",) if cut else ()
    return Written(len(dataset), len(dataset.episodes), (*marked, *notes))


def rows_at_once(spec: Spec) -> int:
    return max(1, min(MOST_ROWS, BYTES_AT_ONCE // spec.frame_bytes))


def truncations(dataset: Dataset) -> np.ndarray:
    """Whether each step of the view is truncated; the last step of a cut episode counts, except the very last
    of the log, after which nothing follows."""
    timeline, last = dataset.timeline, dataset.stops - 1
    found = timeline.truncated[dataset.steps()]
    found[dataset.offsets[1:-1] - 1] |= ~timeline.terminal[last[:-1]]
    return found


def parts(dataset: Dataset, names: Collection[str] = COLUMNS) -> Iterator[Part]:
    """The steps of the view, a bounded number at a time, with these columns.

    `episodes` is the number of each step's episode; `next_observations` are the true successors."""
    timeline, steps, truncated = dataset.timeline, dataset.steps(), truncations(dataset)
    size, optional = rows_at_once(dataset.spec), optional_columns(dataset)
    for start in range(0, len(steps), size):
        part = steps[start : start + size]
        frame = timeline.frame_of(part)
        columns: dict[str, Callable[[], np.ndarray]] = {
            "observations": partial(timeline.frames, frame),
            "actions": partial(timeline.action.__getitem__, part),
            "rewards": partial(timeline.reward.__getitem__, part),
            "terminals": partial(timeline.terminal.__getitem__, part),
            "truncations": partial(truncated.__getitem__, slice(start, start + size)),
            "next_observations": partial(timeline.frames, frame + 1),
            "episodes": partial(dataset.ranges_at, np.arange(start, start + len(part))),
            **{name: partial(column, part) for name, column in optional.items()},
        }
        yield {name: column() for name, column in columns.items() if name in names}


def frames_of(dataset: Dataset, start: int, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """The frames from that of a step on, a bounded number at a time, with the place of their first."""
    first = start + int(dataset.timeline.episode_of(np.array([start]))[0])
    at_once = rows_at_once(dataset.spec)
    for place in range(0, count, at_once):
        yield place, dataset.timeline.frames(first + np.arange(place, min(place + at_once, count)))


def named_parts(dataset: Dataset, names: Collection[str] = COLUMNS) -> Iterator[Part]:
    """The same with the user's own names of the actions."""
    own = dataset.spec.action_names
    found = np.array(own, None if len(set(map(type, own))) == 1 else str)
    for part in parts(dataset, names):
        yield {**part, "actions": found[part["actions"]]} if own and "actions" in part else part


def optional_columns(dataset: Dataset) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """The columns that not every dataset has, as functions from steps to values. The next masks are among
    them if one is known after the last step of an episode; where it is not known, it allows nothing."""
    timeline, actions = dataset.timeline, dataset.spec.actions
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
    if timeline.probability is not None:
        found["probabilities"] = timeline.probability.__getitem__
    if timeline.allowed is not None:
        found["allowed_actions"] = timeline.allowed.__getitem__
        if timeline.allowed_after(dataset.stops - 1).any():
            found["next_allowed_actions"] = lambda steps: Masks(timeline.allowed_after(steps), actions)[:]
    return found


def left_out(dataset: Dataset, held: Collection[str] = ()) -> list[str]:
    """Notes about what a format cannot hold that has no names of actions, and only these optional columns."""
    columns = [name.replace("_", " ") for name in optional_columns(dataset) if name not in held]
    names = [NUMBERED] if dataset.spec.action_names else []
    return [*names, *([f"left out: {' and '.join(columns)}"] if columns else [])]


def signature(dataset: Dataset) -> str:
    """What an import needs that the columns do not say, as JSON."""
    environment = in_one_line(dataset.provenance.get("environment") or "")
    names = {FEATURES: feature_names(dataset), ACTION_COLUMNS: action_columns(dataset)}
    known = {kind: each for kind, each in names.items() if each}
    return json.dumps({"spec": dataset.spec.as_json(), "environment": environment, "names": known})


def new_file(out: str | Path, suffixes: tuple[str, ...]) -> Path:
    """The path of the file to write: `out` itself, or a file in the folder `out`."""
    path = Path(out)
    if path.suffix not in suffixes:
        path = path / f"log{suffixes[0]}"
    if path.exists():
        raise DataError(f"{path} exists already; export to another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
