"""One table names the columns of a log: files, checks, views and copies follow from it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import optimist
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


def test_the_next_column_is_one_line(tmp_path):
    """A copy of the package with one more line writes, checks, opens and saves the new column."""
    package = Path(optimist.__file__).parent
    copy = tmp_path / "optimist"
    for module in [*(package / "data").rglob("*.py"), *package.glob("*.py")]:
        place = copy / module.relative_to(package)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = module.read_text("utf-8")
        if module.name == "transition.py":
            last = '"mask", is_optional=True),\n)\n'
            assert text.count(last) == 1
            text = text.replace(last, last[:-2] + '    Column("cost", "costs", is_optional=True),\n)\n')
        place.write_text(text, "utf-8")
    program = """
import numpy as np
from optimist.data import Dataset, Spec
from optimist.data.intake import Intake
from optimist.data.verify import verify
from optimist.errors import DataError

rows = {"observations": np.ones((9, 2), np.float32), "actions": np.arange(9) % 2, "rewards": np.ones(9),
        "terminals": np.arange(9) % 3 == 2}
spec = Spec((2,), "float32", actions=2)
with Intake("log", spec) as intake:
    intake.add({**rows, "costs": np.arange(9)})
assert Dataset.open("log").first(4).save("part").timeline.columns["cost"].tolist() == [0, 1, 2, 3]
assert verify("log") == verify("part") == []
try:
    Intake("wrong", spec).add({**rows, "costs": np.full(9, np.nan)})
except DataError as refused:
    print(refused)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("costs hold NaN or infinity (first in row 0)")
