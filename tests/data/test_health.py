"""No damage passes in silence: verify names it, with its file and its rows."""

import shutil

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from damage import arrow, recorded, rewritten, swap_steps, table
from reference import SPECS, record

from optimist.data import open_dataset
from optimist.data.health import verify
from optimist.errors import DataError


def test_an_untouched_dataset_has_no_problem(pristine, tmp_path):
    assert verify(pristine) == []
    for name, spec in SPECS.items():
        record(tmp_path / name, spec, lanes=2)
        assert verify(tmp_path / name) == []


def test_every_flipped_bit_is_found(folder):
    random = np.random.default_rng(0)
    names = sorted(path.name for path in folder.iterdir())
    for case in range(500):
        name = names[case % len(names)]
        path = folder / name
        content = bytearray(path.read_bytes())
        place = int(random.integers(len(content)))
        content[place] ^= 1 << int(random.integers(8))
        good = path.read_bytes()
        path.write_bytes(content)
        problems = verify(folder)
        path.write_bytes(good)
        assert problems and all(name in problem and "\n" not in problem for problem in problems), (
            name,
            place,
        )
    assert verify(folder) == []


def test_a_damaged_frame_is_named_by_its_row(folder):
    path = folder / "frames-000001.arrow"
    content = path.read_bytes()
    column = table(path).column(0)
    blob = column[17].as_py()
    assert blob.startswith(zstandard.FRAME_HEADER)
    same = [row for row in range(len(column)) if column[row].as_py() == blob]
    places = [i for i in range(len(content)) if content.startswith(blob, i)]
    hurt = bytearray(content)
    for place in places:
        hurt[place + len(blob) - 1] ^= 1
    path.write_bytes(hurt)
    (problem,) = verify(folder)
    assert f"rows {', '.join(map(str, same[:5]))}" in problem and path.name in problem
    with pytest.raises(DataError, match=path.name):
        open_dataset(folder).tape.frames(np.arange(130))
    with pytest.raises(DataError, match=path.name):
        open_dataset(folder).tape.frames(np.array([44 + same[0]]))
    with pytest.raises(DataError, match=path.name):
        open_dataset(folder).tape.decoded()


def test_extra_swapped_and_old_are_named_by_verify(folder):
    shutil.copy(folder / "steps-000000.arrow", folder / "steps-000007.arrow")
    assert any("steps-000007.arrow is not in the manifest" in problem for problem in verify(folder))
    (folder / "steps-000007.arrow").unlink()
    one, two = folder / "steps-000000.arrow", folder / "steps-000001.arrow"
    if one.stat().st_size == two.stat().st_size:
        swap_steps(folder)
        assert any("holds the contents of steps-000001.arrow" in problem for problem in verify(folder))
        swap_steps(folder)
    old = (folder / "manifest.json").read_text()
    recorded(folder, rows=30)
    (folder / "manifest.json").write_text(old)
    assert any("the manifest is old" in problem for problem in verify(folder))


def test_wrong_values_under_right_hashes_are_named_with_their_rows(folder):
    def spoiled(path):
        batch = table(path)
        action = batch.column("action").to_pylist()
        action[11] = 77
        return arrow(batch.set_column(2, "action", pa.array(action, pa.int32())))

    rewritten(folder, spoiled)
    (problem,) = verify(folder)
    assert "rows 11: the action is outside the spec" in problem
