"""Import of HDF5 files: D4RL's arrays, and d3rlpy's episodes."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optimist.data.formats import _hdf5, _incoming
from optimist.data.formats._incoming import Imported, Report, Signed, gathered, said_no, signed
from optimist.data.formats._named_arrays import (
    KNOWN,
    NEEDED,
    NamedArrayFacts,
    NamedArrays,
    check_lengths,
    rows_at_once,
)
from optimist.data.rules.log import Asked, Part
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line, some_of

SUFFIXES = (".hdf5", ".h5")
OURS = "optimist"  # an attribute of files that `write` made: the spec as JSON
COLUMNS = {**KNOWN, "episode_terminals": "truncations"}  # the last is an array of d3rlpy 1
D3RLPY = "2.1"  # the version of d3rlpy's files


@dataclass(frozen=True)
class ReadOptions(NamedArrayFacts):
    """Facts that are not in the file."""


def detect(address: str | Path) -> bool:
    path = Path(address)
    return path.suffix in SUFFIXES and path.name != "main_data.hdf5" and _hdf5.is_hdf5(path)


@dataclass(frozen=True)
class Arrays(NamedArrays):
    """A file in D4RL's layout: arrays with a row for each step."""

    actions_are_named = False
    left_out: tuple[str, ...]

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        with _hdf5.opened(self.path) as file:
            arrays = {name: file.array(self.uses[name], of="texts") for name in names if name in self.uses}
            size = rows_at_once((array.shape, array.dtype) for array in arrays.values())
            for start in range(0, self.rows, size):
                rows = slice(start, start + size)
                yield self._typed({name: _hdf5.plain(array, rows) for name, array in arrays.items()})

    def _typed(self, part: Part) -> Part:
        if self.uses.get("truncations") == "episode_terminals" and "truncations" in part:
            part["truncations"] = part["truncations"].astype(bool) & ~part["terminals"].astype(bool)
        return part


@dataclass(frozen=True)
class Episodes:
    """A file of d3rlpy: arrays with numbers for each episode, whose last observation is that of its last
    step. The successor of the last step is known only if it is terminal."""

    path: Path
    count: int
    rows: int
    spec: Spec | None
    environment: str | None
    names: Mapping[str, list[str]]
    actions = None
    actions_are_named = False
    columns = frozenset(("observations", "actions", "rewards", "terminals", "truncations"))
    left_out = ()

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        return gathered(self._episodes(names))

    def _episodes(self, names: Collection[str]) -> Iterator[Part]:
        with _hdf5.opened(self.path) as file:
            for number in range(self.count):
                yield from self._episode(file, number, names)

    def _episode(self, file: _hdf5.Group, number: int, names: Collection[str]) -> Iterator[Part]:
        """The rows of one episode; a long one in several parts."""
        if f"observations_{number}_0" in file:
            raise DataError(f"{self.path} has tuples of observations; save it with one array for each")
        arrays = {
            name: file.array(f"{name}_{number}")
            for name in ("observations", "actions", "rewards")
            if name in names
        }
        counts = {name: array.shape[0] for name, array in arrays.items()}
        if len(set(counts.values())) > 1:
            raise DataError(f"{self.path} episode {number} has arrays of different lengths: {counts}")
        steps = next(iter(counts.values()))
        terminal = bool(file.value(f"terminated_{number}"))
        size = rows_at_once((array.shape, array.dtype) for array in arrays.values())
        for start in range(0, steps, size):
            part = {name: array[start : start + size] for name, array in arrays.items()}
            if "observations" in part:
                part["observations"] = self._frames(part["observations"])
            if "rewards" in part:
                last = np.arange(start, start + len(part["rewards"])) == steps - 1
                part |= {"terminals": last & terminal, "truncations": last & (not terminal)}
            yield part

    def _frames(self, values: np.ndarray) -> np.ndarray:
        """Images of a file that `write` made have their channels first, as d3rlpy takes them."""
        is_ours = self.spec is not None and values.ndim == 4
        return np.moveaxis(values, 1, -1) if is_ours else values


def opened(address: str | Path, options: ReadOptions) -> Arrays | Episodes:
    path = Path(address)
    with _hdf5.opened(path) as file:
        ours = signed(file.attributes[OURS], path) if OURS in file.attributes else Signed()
        if "num_episodes" in file and "columns" in file:
            return _d3rlpy(file, path, ours)
        return _arrays(file, path, options, ours)


def _d3rlpy(file: _hdf5.Group, path: Path, ours: Signed) -> Episodes:
    version = file.value("version") if "version" in file else "?"
    if version != D3RLPY:
        raise DataError(
            f"{path} has version {in_one_line(version)} of d3rlpy's files; save it with d3rlpy 2.1 or newer"
        )
    count = file.value("num_episodes")
    if type(count) is not int or not 0 <= count <= len(file):
        facts = f"{path} says that it has {in_one_line(count)} episodes, and holds {len(file):,} arrays"
        raise DataError(f"{facts}; save it again")
    rows = sum(len(file.array(f"rewards_{number}")) for number in range(count))
    return Episodes(path, count, rows, *ours)


def _arrays(file: _hdf5.Group, path: Path, options: ReadOptions, ours: Signed) -> Arrays:
    kept = {*file} - {*options.dropped(list(file), path)}
    kept = {name for name in kept & {*COLUMNS} if not isinstance(file.get(name), _hdf5.Group)}
    uses = {COLUMNS[name]: name for name in reversed(list(COLUMNS)) if name in kept}
    missing = [name for name in NEEDED if name not in uses]
    if missing:
        held = some_of([in_one_line(name, 40) for name in file], 100) or "nothing"
        raise DataError(f"{path} holds {held}, and lacks {', '.join(missing)}: save them with these names")
    check_lengths({name: file.array(name, of="texts").shape[0] for name in uses.values()}, path)
    left_out = tuple(name for name in file if name not in uses.values())
    return Arrays(path, uses, len(file.array(uses["rewards"])), *ours, left_out)


def read(
    address: str | Path,
    out: str | Path,
    options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Import a file in D4RL's or d3rlpy's layout."""
    log = opened(address, options)
    asked = options.asked(log.environment, every_end_is_terminal=said_no(options.truncations))
    provenance = {"format": "hdf5", "source": Path(address).name, **log.names}
    notes = (
        [f"left out: {some_of([in_one_line(name, 40) for name in log.left_out], 12)}"] if log.left_out else []
    )
    adds_finals = log.spec is not None and isinstance(log, Episodes)  # as `write` does
    return _incoming.bring_in(log, out, asked, provenance, progress, notes, is_padded=adds_finals)


def verify(address: str | Path) -> Report:
    """Report the first problem that an import would raise."""
    rows: list[tuple[str, ...]] = []
    options = ReadOptions()
    try:
        with _hdf5.opened(Path(address)) as file:
            shown = [(name, file.get(name)) for name in list(file)[:20]]
            arrays = [(name, each) for name, each in shown if hasattr(each, "shape")]
            rows = [(in_one_line(name), str(each.shape), str(each.dtype)) for name, each in arrays]
        problems = _incoming.problems(opened(address, options), Asked())
    except DataError as problem:
        problems = [str(problem)]
    return Report(problems, rows, ("array", "shape", "type"))
