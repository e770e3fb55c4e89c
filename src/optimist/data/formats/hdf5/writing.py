"""Export as HDF5: d3rlpy's episodes, or D4RL's arrays."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.files import TEMPORARY, storage_error
from optimist.data.formats import _hdf5
from optimist.data.formats._outgoing import (
    WRITTEN,
    Written,
    left_out,
    new_file,
    optional_columns,
    parts,
    rows_at_once,
    signature,
    written,
)
from optimist.data.formats.hdf5.reading import D3RLPY, OURS, SUFFIXES
from optimist.data.transition import Spec
from optimist.data.views import episodes_in_words
from optimist.errors import UsageError

LAYOUTS = ("d3rlpy", "d4rl")


@dataclass(frozen=True)
class WriteOptions:
    """Which program will read it."""

    layout: Annotated[str, "d3rlpy, or d4rl, which holds the successor of every step"] = "d3rlpy"

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise UsageError(f"--layout {self.layout}: choose {' or '.join(LAYOUTS)}")


def write(
    dataset: Dataset,
    out: str | Path,
    options: WriteOptions = WriteOptions(),  # noqa: B008  (frozen)
) -> Written:
    """Write one file, `out` or `out/log.hdf5`; it appears when it is complete."""
    path = new_file(out, SUFFIXES if options.layout == "d4rl" else SUFFIXES[::-1])
    partial = path.with_name(path.name + TEMPORARY)
    partial.unlink(missing_ok=True)
    try:
        with _hdf5.created(partial) as file:
            file.attrs[OURS] = signature(dataset)
            notes = (
                _write_arrays(dataset, file) if options.layout == "d4rl" else _write_episodes(dataset, file)
            )
        partial.rename(path)
    except OSError as problem:
        partial.unlink(missing_ok=True)
        raise storage_error(path, 0, problem) from problem
    return written(dataset, *notes)


def _write_arrays(dataset: Dataset, file: Any) -> list[str]:
    names, start = {"truncations": "timeouts"}, 0
    for part in parts(dataset, (*WRITTEN, *optional_columns(dataset))):
        for name, values in part.items():
            target = names.get(name, name)
            if not start:
                file.create_dataset(target, (len(dataset), *values.shape[1:]), values.dtype)
            file[target][start : start + len(values)] = values
        start += len(part["rewards"])
    return ["actions are numbers from 0 on, in the order of their names"] if dataset.spec.action_names else []


def _write_episodes(dataset: Dataset, file: Any) -> list[str]:
    """d3rlpy takes the observation after a step from the next row, and none after a terminal step. So an
    episode that was truncated gets one more row: its final observation, with the last action again, which is
    within the bounds, and a reward of zero; neither is ever used."""
    episodes, spec = dataset.episodes, dataset.spec
    file["columns"] = ["observations", "actions", "rewards", "terminated"]
    file["num_episodes"] = len(episodes)
    file["version"] = D3RLPY
    for number, (start, stop) in enumerate(zip(dataset.starts.tolist(), dataset.stops.tolist(), strict=True)):
        _write_episode(dataset, file, number, start, stop, bool(episodes.terminal[number]))
    cut = int((~episodes.terminal).sum())
    channels = "images are channels-first, as d3rlpy takes them"
    more = f"one more row, the final observation, in {episodes_in_words(cut)} without a terminal step"
    lost = "observations after terminal steps are not in this format; they read as zeros"
    said: dict[str, Any] = {more: cut, lost: episodes.terminal.any(), channels: len(spec.frame_shape) == 3}
    return [*left_out(dataset), *(note for note, applies in said.items() if applies)]


def _write_episode(dataset: Dataset, file: Any, number: int, start: int, stop: int, terminal: bool) -> None:
    timeline, spec, more = dataset.timeline, dataset.spec, int(not terminal)
    count = stop - start + more
    action, reward = timeline.action[start:stop], timeline.reward[start:stop]
    padding = [(0, more)] + [(0, 0)] * (action.ndim - 1)
    file[f"actions_{number}"] = np.pad(action, padding, mode="edge").reshape(count, -1)
    file[f"rewards_{number}"] = np.pad(reward, (0, more)).reshape(count, 1)
    file[f"terminated_{number}"] = terminal
    first = start + int(timeline.episode_of(np.array([start]))[0])
    target = file.create_dataset(f"observations_{number}", (count, *_shape(spec)), spec.frame_dtype)
    at_once = rows_at_once(spec)
    for place in range(0, count, at_once):
        frames = timeline.frames(first + np.arange(place, min(place + at_once, count)))
        target[place : place + len(frames)] = np.moveaxis(frames, -1, 1) if frames.ndim == 4 else frames


def _shape(spec: Spec) -> tuple[int, ...]:
    """Images with their channels first."""
    return (spec.frame_shape[-1], *spec.frame_shape[:-1]) if len(spec.frame_shape) == 3 else spec.frame_shape
