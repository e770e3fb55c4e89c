"""HDF5 files: D4RL's layout of arrays, and the .h5 files of d3rlpy."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.files import built_beside
from optimist.data.formats import _hdf5
from optimist.data.formats._arrays import KNOWN, NamedArrayFacts, common_length, rows_together
from optimist.data.formats._incoming import OURS, gathered, signed
from optimist.data.formats._outgoing import (
    NUMBERED,
    WRITTEN,
    Written,
    frames_of,
    left_out,
    new_file,
    optional_columns,
    parts,
    signature,
    written,
)
from optimist.data.rules.log import Log, Part
from optimist.data.views import episodes_in_words
from optimist.errors import DataError, UsageError, in_one_line, some_of

SUFFIXES = (".hdf5", ".h5")
COLUMNS = {**KNOWN, "episode_terminals": "truncations"}  # the last is an array of d3rlpy 1
D3RLPY = "2.1"  # the version of d3rlpy's files
EPISODE_COLUMNS = ("observations", "actions", "rewards", "terminals", "truncations")


@dataclass(frozen=True)
class ReadOptions(NamedArrayFacts):
    """Facts that are not in the file."""


def detect(address: str | Path) -> bool:
    path = Path(address)
    return path.suffix in SUFFIXES and path.name != "main_data.hdf5" and _hdf5.is_hdf5(path)


def open(address: str | Path, options: ReadOptions) -> Log:
    """The log in a file of D4RL's or d3rlpy's layout."""
    path = Path(address)
    with _hdf5.opened(path) as file:
        ours, contents = signed(file.attributes.get(OURS), path), []
        for name in list(file)[
            :20
        ]:  # there may be millions, and some that nobody reads may be links elsewhere
            with suppress(DataError):
                if hasattr(array := file.get(name), "shape"):
                    contents.append((in_one_line(name), str(array.shape), str(array.dtype)))
        log = Log(
            columns=EPISODE_COLUMNS,
            parts=lambda names: (),
            asked=options.asked(ours.environment, options.truncations),
            spec=ours.spec,
            provenance=ours.names,
            heads=("array", "shape", "type"),
            contents=contents,
        )
        if "num_episodes" in file and "columns" in file:
            return _d3rlpy(file, path, log)
        return _d4rl(file, path, options, log)


def _d4rl(file: _hdf5.Group, path: Path, options: ReadOptions, log: Log) -> Log:
    """Arrays with a row for each step."""
    kept = {*file} - {*options.dropped(list(file), path)}
    kept = {name for name in kept & {*COLUMNS} if not isinstance(file.get(name), _hdf5.Group)}
    uses = {COLUMNS[name]: name for name in reversed(list(COLUMNS)) if name in kept}
    arrays = {name: file.array(name, of="texts") for name in uses.values()}
    shapes = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    rows = common_length(shapes, uses, file, path)
    left_out = [in_one_line(name, 40) for name in file if name not in arrays]
    return replace(
        log,
        columns=uses,
        parts=partial(_array_parts, path, uses, rows),
        rows=rows,
        notes=[f"left out: {some_of(left_out, 12)}"] if left_out else [],
    )


def _array_parts(path: Path, uses: dict[str, str], count: int, names: Collection[str]) -> Iterator[Part]:
    with _hdf5.opened(path) as file:
        arrays = {name: file.array(uses[name], of="texts") for name in names if name in uses}
        size = rows_together((array.shape, array.dtype) for array in arrays.values())
        for start in range(0, count, size):
            rows = slice(start, start + size)
            part = {name: _hdf5.plain(array, rows) for name, array in arrays.items()}
            if uses.get("truncations") == "episode_terminals" and "truncations" in part:
                part["truncations"] = part["truncations"].astype(bool) & ~part["terminals"].astype(bool)
            yield part


def _d3rlpy(file: _hdf5.Group, path: Path, log: Log) -> Log:
    """Arrays with numbers for each episode, whose last observation is that of its last step. The successor of
    the last step is known only if it is terminal; `write` adds a row with it."""
    version = file.value("version") if "version" in file else "?"
    if version != D3RLPY:
        raise DataError(
            f"{path} has version {in_one_line(version)} of d3rlpy's files; save it with d3rlpy 2.1 or newer"
        )
    count = file.value("num_episodes")
    if type(count) is not int or not 0 <= count <= len(file):
        facts = f"{path} says that it has {in_one_line(count)} episodes, and holds {len(file):,} arrays"
        raise DataError(f"{facts}; save it again")
    rows, is_ours = sum(len(file.array(f"rewards_{number}")) for number in range(count)), log.spec is not None

    def parts(names: Collection[str]) -> Iterator[Part]:
        with _hdf5.opened(path) as file:
            episodes = (_episode(file, number, names, is_ours) for number in range(count))
            yield from gathered(part for episode in episodes for part in episode)

    return replace(log, parts=parts, rows=rows, is_padded=is_ours)


def _episode(file: _hdf5.Group, number: int, names: Collection[str], is_ours: bool) -> Iterator[Part]:
    """The rows of one episode; a long one in several parts. Images of a file that `write` made have their
    channels first, as d3rlpy takes them."""
    if f"observations_{number}_0" in file:
        raise DataError(f"{file.place} has tuples of observations; save it with one array for each")
    arrays = {
        name: file.array(f"{name}_{number}")
        for name in ("observations", "actions", "rewards")
        if name in names
    }
    counts = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise DataError(f"{file.place} episode {number} has arrays of different lengths: {counts}")
    steps = next(iter(counts.values()))
    terminal = bool(file.value(f"terminated_{number}"))
    size = rows_together((array.shape, array.dtype) for array in arrays.values())
    for start in range(0, steps, size):
        part = {name: array[start : start + size] for name, array in arrays.items()}
        if is_ours and "observations" in part and part["observations"].ndim == 4:
            part["observations"] = np.moveaxis(part["observations"], 1, -1)
        if "rewards" in part:
            last = np.arange(start, start + len(part["rewards"])) == steps - 1
            part |= {"terminals": last & terminal, "truncations": last & (not terminal)}
        yield part


LAYOUTS = ("d3rlpy", "d4rl")


@dataclass(frozen=True)
class WriteOptions:
    """Which program will read it."""

    layout: Annotated[str, "d3rlpy, or d4rl, which holds the successor of every step"] = "d3rlpy"

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise UsageError(f"--layout {self.layout}: choose {' or '.join(LAYOUTS)}")


def write(dataset: Dataset, out: str | Path, options: WriteOptions) -> Written:
    """Write one file, `out` or `out/log.hdf5`; it appears when it is complete."""
    path = new_file(out, SUFFIXES if options.layout == "d4rl" else SUFFIXES[::-1])
    fill = _write_arrays if options.layout == "d4rl" else _write_episodes
    with built_beside(path) as partial, _hdf5.created(partial) as file:
        file.attrs[OURS] = signature(dataset)
        notes = fill(dataset, file)
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
    return [NUMBERED] if dataset.spec.action_names else []


def _write_episodes(dataset: Dataset, file: Any) -> list[str]:
    """d3rlpy takes the observation after a step from the next row, and none after a terminal step. So an
    episode that was truncated gets one more row: its final observation, with the last action again, which is
    within the bounds, and a reward of zero; neither is ever used."""
    episodes, spec = dataset.episodes, dataset.spec
    file["columns"] = ["observations", "actions", "rewards", "terminated"]
    file["num_episodes"] = len(episodes)
    file["version"] = D3RLPY
    timeline, images = dataset.timeline, len(spec.frame_shape) == 3
    shape = np.roll(spec.frame_shape, 1) if images else spec.frame_shape  # channels first
    for number, (start, stop) in enumerate(zip(dataset.starts.tolist(), dataset.stops.tolist(), strict=True)):
        added = int(not episodes.terminal[number])
        count, action = stop - start + added, timeline.action[start:stop]
        padding = [(0, added)] + [(0, 0)] * (action.ndim - 1)
        file[f"actions_{number}"] = np.pad(action, padding, mode="edge").reshape(count, -1)
        file[f"rewards_{number}"] = np.pad(timeline.reward[start:stop], (0, added)).reshape(count, 1)
        file[f"terminated_{number}"] = not added
        target = file.create_dataset(f"observations_{number}", (count, *shape), spec.frame_dtype)
        for place, frames in frames_of(dataset, start, count):
            target[place : place + len(frames)] = np.moveaxis(frames, -1, 1) if images else frames
    cut = int((~episodes.terminal).sum())
    channels = "images are channels-first, as d3rlpy takes them"
    more = f"one more row, the final observation, in {episodes_in_words(cut)} without a terminal step"
    lost = "observations after terminal steps are not in this format; they read as zeros"
    said: dict[str, Any] = {more: cut, lost: episodes.terminal.any(), channels: images}
    return [*left_out(dataset), *(note for note, applies in said.items() if applies)]
