"""verify reports every damage, with its file and its rows."""

import re
import shutil

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from damage import REFUSED, arrow, recorded, rewritten, swap_steps, table
from optimist.data import Recorder, Spec, open_dataset
from optimist.data.verify import verify
from optimist.errors import DataError
from reference import SPECS, record


@pytest.mark.parametrize(("damage", "said"), REFUSED.values(), ids=REFUSED)
def test_opening_and_verify_refuse_it_in_one_line(folder, damage, said):
    damage(folder)
    with pytest.raises(DataError, match=said) as refused:
        open_dataset(folder)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500
    assert any(re.search(said, problem) for problem in verify(folder))


def test_an_untouched_dataset_has_no_problem(pristine, tmp_path):
    assert verify(pristine) == []
    for name, spec in SPECS.items():
        record(tmp_path / name, spec, lanes=2)
        assert verify(tmp_path / name) == []


def test_every_flipped_bit_is_found(folder):
    random = np.random.default_rng(0)
    names = sorted(path.name for path in folder.iterdir() if path.name != ".lock")
    for case in range(200):
        name = names[case % len(names)]
        path = folder / name
        content = bytearray(path.read_bytes())
        place = int(random.integers(len(content)))
        content[place] ^= 1 << int(random.integers(8))
        good = path.read_bytes()
        path.write_bytes(content)
        problems = verify(folder)
        path.write_bytes(good)
        assert problems and all(name in each and "\n" not in each for each in problems), (name, place)
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
        open_dataset(folder).timeline.frames(np.arange(130))
    with pytest.raises(DataError, match=path.name):
        open_dataset(folder).timeline.frames(np.array([44 + same[0]]))
    with pytest.raises(DataError, match=path.name):
        open_dataset(folder).timeline.decoded()


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


VECTORS = Spec((2,), "float32", action_low=(-1.0, -1.0), action_high=(1.0, 1.0))


@pytest.fixture
def vectors(tmp_path):
    """Twelve steps with increasing numbers, each an episode."""
    with Recorder(tmp_path / "vectors", VECTORS, lanes=1) as recorder:
        for row in range(12):
            frame = np.full((1, 2), row, np.float32)
            recorder.add(frame, [[0.5, row / 12]], [float(row)], [True], [False], frame + 0.5)
    return tmp_path / "vectors"


def spoiled(name, row, value):
    """A shard file with one number replaced."""

    def change(path):
        batch = table(path)
        column = batch.column(name)
        numbers = np.array(column.flatten() if pa.types.is_fixed_size_list(column.type) else column)
        numbers.reshape(batch.num_rows, -1)[row, -1] = value
        new = pa.array(numbers) if numbers.size == batch.num_rows else list_of(numbers, batch.num_rows)
        return arrow(batch.set_column(batch.schema.get_field_index(name), batch.schema.field(name), new))

    return change


def list_of(numbers, rows):
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers), numbers.size // rows)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        *(("action", value, "an action outside the spec") for value in (np.nan, np.inf, -1.5)),
        ("reward", np.nan, "a reward that is not finite"),
    ],
)
def test_wrong_values_under_right_hashes_are_named_and_not_trained_on(vectors, column, value, said):
    rewritten(vectors, spoiled(column, 7, np.float32(value)))
    (problem,) = verify(vectors)
    assert f"rows 7: {said}" in problem
    with pytest.raises(DataError, match=f"steps-000000.arrow holds {said} in row 7"):
        open_dataset(vectors)


def test_an_action_that_the_spec_lacks_is_named(folder):
    rewritten(folder, spoiled("action", 11, 77))
    assert "rows 11: an action outside the spec" in verify(folder)[0]
    with pytest.raises(DataError, match="holds an action outside the spec in row 11"):
        open_dataset(folder)


def test_an_observation_that_is_not_finite_is_named_and_not_trained_on(vectors):
    rewritten(vectors, spoiled("frame", 5, np.float32(np.inf)), name="frames")
    (problem,) = verify(vectors)
    assert "frames-000000.arrow: row 5 holds NaN or infinity" in problem
    with pytest.raises(DataError, match="row 5 holds NaN or infinity"):
        open_dataset(vectors).timeline.decoded()
