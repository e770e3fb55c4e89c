"""A small log, and the two doors that it can come in by: arrays in memory, and a file that is imported. Both
have the same rules."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimist.data import Dataset, Sampler, formats, open_dataset, transitions
from optimist.data.formats._arrays import KNOWN
from optimist.errors import DataError

NPZ = formats.find("npz")


def log(steps: int = 6, **changes) -> dict[str, Any]:
    """The arguments of `from_arrays`; a change to None leaves one out."""
    given = {
        "observations": np.arange(steps, dtype=np.float64)[:, None] + 1,
        "actions": np.arange(steps) % 3,
        "rewards": np.arange(steps),
        "terminals": np.isin(np.arange(steps), [2]),
        "truncations": False,
    }
    return {name: value for name, value in (given | changes).items() if value is not None}


def in_memory(folder: Path, given: dict[str, Any]) -> Dataset:
    return Dataset.from_arrays(**given)


def imported(folder: Path, given: dict[str, Any]) -> Dataset:
    columns = {name: value for name, value in given.items() if name in KNOWN}
    options = {name: value for name, value in given.items() if name not in KNOWN}
    if columns.get("truncations") is False:
        del columns["truncations"]
        options["truncations"] = "no"
    if "action_names" in options:
        options["action_names"] = ",".join(map(str, options["action_names"]))
    place = Path(tempfile.mkdtemp(dir=folder))
    np.savez(place / "log.npz", **columns)
    NPZ.read(place / "log.npz", place / "data", NPZ.ReadOptions(**options))
    return open_dataset(place / "data")


DOORS = [in_memory, imported]


def assert_refused(door, given: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said) as refused:
        door(**given)
    assert "\n" not in str(refused.value)


def everything(data: Dataset):
    return transitions(Sampler(data, gamma=0.5), np.arange(len(data)), data.timeline.frames)
