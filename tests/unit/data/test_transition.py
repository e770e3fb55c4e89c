"""One table names the columns of a log: files, checks, views and copies follow from it."""

import numpy as np
import pytest

from optimist.data import Dataset, Spec, from_arrays
from optimist.data.disk import manifest as manifests
from optimist.data.disk.shard import steps_schema
from optimist.data.transition import COLUMNS, OF_STEPS, OPTIONAL
from optimist.data.verify import verify
from optimist.errors import DataError

pytestmark = pytest.mark.usefixtures("quick_disk")
COUNT = 12
ROWS = {
    "action": np.arange(COUNT) % 3,
    "reward": np.arange(COUNT) * 0.5,
    "terminal": np.arange(COUNT) % 5 == 4,
    "truncated": np.arange(COUNT) % 4 == 3,
    "probability": np.linspace(0.1, 1, COUNT),
    "allowed": np.ones((COUNT, 3), bool),
    "next_allowed": np.ones((COUNT, 3), bool),
}


def log(without: str = "") -> Dataset:
    frames = np.arange(COUNT + 1, dtype=np.float32)[:, None]
    columns = {column.plural: ROWS[column.name] for column in OF_STEPS if column.name != without}
    return from_arrays(observations=frames[:-1], next_observations=frames[1:], **columns)


def stored(data: Dataset, name: str) -> np.ndarray:
    return data.timeline.columns[name]


@pytest.mark.parametrize("column", OF_STEPS, ids=lambda column: column.name)
def test_every_column_goes_through_every_copy(tmp_path, column):
    made = log()
    rows = ROWS[column.name].astype(bool if column.kind == "mask" else column.dtype(made.spec))
    if column.name != "next_allowed":  # which the next row says within an episode
        wanted = np.packbits(rows, axis=1) if column.kind == "mask" else rows
        np.testing.assert_array_equal(stored(made, column.name), wanted)
    saved = made.save(tmp_path / "log")
    np.testing.assert_array_equal(stored(saved, column.name), stored(made, column.name))
    assert stored(saved, column.name).dtype == column.dtype(made.spec)
    part = made.last(5).save(tmp_path / "part")
    np.testing.assert_array_equal(stored(part, column.name), stored(made, column.name)[-5:])
    assert verify(tmp_path / "log") == verify(tmp_path / "part") == []


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_optional_column_may_be_left_out(tmp_path, name):
    if name == "allowed":
        with pytest.raises(DataError, match="next_allowed_actions belong to allowed_actions"):
            log(without=name)
        return
    assert name not in log(without=name).save(tmp_path / "log").timeline.columns
    assert manifests.read(tmp_path / "log").columns == tuple(other for other in OPTIONAL if other != name)


@pytest.mark.parametrize(
    "spec", [Spec((2,), "uint8", actions=9), Spec((2,), "uint8", action_low=(0,), action_high=(1,))]
)
def test_files_have_the_columns_of_the_table_in_its_order(spec):
    assert steps_schema(spec, OPTIONAL).names == [column.name for column in COLUMNS]
    for column in COLUMNS:
        empty = column.empty(4, spec)
        assert empty.shape == (4, *column.shape(spec)) and empty.dtype == column.dtype(spec)
