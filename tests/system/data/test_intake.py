"""An intake writes whole arrays: in any parts, within bounded memory, and all of it or nothing."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.data import Dataset, Recorder, Spec
from optimist.data.disk import manifest as manifests
from optimist.data.intake import Intake, steps_per_shard
from optimist.data.verify import verify
from optimist.errors import DataError
from patience import PATIENCE

pytestmark = pytest.mark.usefixtures("quick_disk")
SPEC = Spec((2,), "float32", actions=3)


def rows(count, first=0):
    """Row t shows t and t + 1; every fifth row is terminal, every seventh truncated."""
    t = np.arange(first, first + count)
    return {
        "observations": np.stack([t, t + 1], axis=1).astype(np.float32),
        "actions": t % 3,
        "rewards": t.astype(float),
        "terminals": t % 5 == 4,
        "truncations": t % 7 == 6,
    }


def with_successors(columns):
    return {**columns, "next_observations": columns["observations"] + 1}


def everything(dataset):
    return [dataset.timeline.frames(np.arange(dataset.timeline.frame_count))] + [
        getattr(dataset.timeline, name) for name in ("action", "reward", "terminal", "truncated", "time")
    ]


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_the_parts_in_which_a_log_comes_do_not_matter(data, tmp_path_factory):
    count = data.draw(st.integers(1, 40))
    columns = rows(count)
    columns["terminals"] = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    columns["truncations"] = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    if data.draw(st.booleans()):
        columns = with_successors(columns)
    try:
        expected = Dataset.from_arrays(**columns)
    except DataError as problem:
        assert "no transition is left" in str(problem)
        return
    cuts = sorted(data.draw(st.sets(st.integers(1, 40), max_size=5)))
    folder = tmp_path_factory.mktemp("parts") / "log"
    with Intake(folder, expected.spec, shard_steps=data.draw(st.integers(1, 50))) as intake:
        for start, stop in zip([0, *cuts], [*cuts, count], strict=True):
            intake.add({name: column[start:stop] for name, column in columns.items()})
    found = Dataset.open(folder)
    assert verify(folder) == []
    for one, other in zip(everything(found), everything(expected), strict=True):
        np.testing.assert_array_equal(one, other)
    assert intake.counts.steps == len(expected) and intake.counts.left_out.steps == count - len(expected)
    assert intake.counts.episodes == len(expected.episodes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": np.where(np.arange(30) == 21, np.nan, 0)}, "rewards hold NaN .* row 121"),
        ({"actions": np.where(np.arange(30) == 5, 3, 0)}, "action in row 105 is 3, not from 0 to 2"),
        ({"rewards": 2**24 + np.arange(30.0)}, "rewards hold whole numbers .* row 101"),
        ({"terminals": np.arange(30)}, "terminals .* true and false .* row 102"),
        ({"next_observations": np.zeros((30, 2), np.float32)}, "next observation of row 100 .* truncations="),
        ({"observations": np.zeros((29, 2))}, "observations .* 30 rows"),
        ({"rewards": None}, "columns .* needed"),
        ({"reward": np.zeros(30)}, "columns .* give observations"),
    ],
)
def test_bad_rows_are_named_and_leave_nothing(tmp_path, changes, said):
    with pytest.raises(DataError, match=said), Intake(tmp_path / "log", SPEC, shard_steps=10) as intake:
        intake.add(with_successors(rows(100)) | {"truncations": np.arange(100) % 10 == 9})
        intake.add(with_successors(rows(30, 100)) | changes)
    assert not (tmp_path / "log").exists()


def test_a_failed_append_leaves_the_dataset_as_it_was(tmp_path):
    with Intake(tmp_path / "log", SPEC) as intake:
        intake.add(rows(30))
    before = sorted((path.name, path.read_bytes()) for path in (tmp_path / "log").iterdir())
    with pytest.raises(RuntimeError), Intake(tmp_path / "log", SPEC, append=True, shard_steps=4) as intake:
        intake.add(rows(30))
        raise RuntimeError
    assert sorted((path.name, path.read_bytes()) for path in (tmp_path / "log").iterdir()) == before


def test_an_intake_goes_into_a_new_folder_unless_it_appends_the_same_kind_of_steps(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    (tmp_path / "file").touch()
    with Intake(tmp_path / "log", SPEC) as intake:
        intake.add(rows(30))
    for name, spec, append, said in [
        ("other", SPEC, False, "holds thesis.tex, not a dataset"),
        ("other", SPEC, True, "holds thesis.tex, not a dataset"),
        ("file", SPEC, False, "not a folder"),
        ("log", SPEC, False, "holds a dataset already; .* append"),
        ("log", Spec((2,), "float32", actions=4), True, "its actions is 3, not 4"),
    ]:
        with pytest.raises(DataError, match=said):
            Intake(tmp_path / name, spec, append=append)
    assert len(Dataset.open(tmp_path / "log")) == 26 and (tmp_path / "other" / "thesis.tex").exists()


def test_an_append_has_the_same_columns_in_the_same_order(tmp_path):
    """Two features that are exchanged have the same spec."""
    named = {"features": ["age", "hour"]}
    with Intake(tmp_path / "log", SPEC, provenance=named) as intake:
        intake.add(rows(30))
    said = r"log has age where the new log has hour \(number 0 of the features\)"
    with pytest.raises(DataError, match=said):
        Intake(tmp_path / "log", SPEC, provenance={"features": ["hour", "age"]}, append=True)
    for same in (named, {}):
        with Intake(tmp_path / "log", SPEC, provenance=same, append=True) as intake:
            intake.add(rows(30))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        ((0.5, 0.0), (1.0, 1.0), "import the new log with --action-low 0.1,0.0 --action-high 2.0,1.0$"),
        ((0.5, -3.0), (4.0, 1.0), "import both with --action-low 0.1,-3.0 --action-high 4.0,1.0, or wider"),
    ],
)
def test_bounds_of_actions_that_differ_are_told_with_the_words_that_end_it(low, high, said, tmp_path):
    """Bounds are those of the log unless they are given, and the next month's differ."""
    spec = Spec((2,), "float32", action_low=(0.1, 0.0), action_high=(2.0, 1.0))
    with Intake(tmp_path / "log", spec) as intake:
        intake.add({**rows(30), "actions": np.full((30, 2), 0.5)})
    with pytest.raises(DataError, match=said):
        Intake(tmp_path / "log", replace(spec, action_low=low, action_high=high), append=True)


ENDLESS = """
import sys
import numpy as np
from optimist.data import Spec
from optimist.data.intake import Intake

t = np.arange(100)
rows = {"observations": np.stack([t, t + 1], axis=1).astype(np.float32), "actions": t % 3, "rewards": t,
        "terminals": t % 5 == 4}
with Intake(sys.argv[1], Spec((2,), "float32", actions=3), append=True, shard_steps=50) as intake:
    while True:
        intake.add(rows)
"""


def killed_in_mid_write(folder, shard):
    child = subprocess.Popen([sys.executable, "-c", ENDLESS, str(folder)])
    deadline = time.monotonic() + PATIENCE
    while not (folder / f"steps-{shard:06d}.arrow").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()


def test_kill_9_leaves_a_folder_that_is_refused_or_the_data_from_before(tmp_path):
    folder = tmp_path / "log"
    killed_in_mid_write(folder, shard=2)
    for attempt in (Dataset.open, partial(Intake, spec=SPEC), partial(Recorder, spec=SPEC, lanes=1)):
        with pytest.raises(DataError, match="is not complete: .* remove the folder.* --restart"):
            attempt(folder)
    assert "is not complete" in verify(folder)[0] and len(verify(folder)) == 1
    with Intake(folder, SPEC, restart=True) as intake:
        intake.add(rows(30))
    whole = Dataset.open(folder)
    assert verify(folder) == [] and len(whole) == 26

    killed_in_mid_write(folder, shard=3)  # now it appends
    assert Dataset.open(folder).fingerprint == whole.fingerprint
    with Intake(folder, SPEC, append=True) as intake:
        intake.add(rows(30))
    assert verify(folder) == [] and len(Dataset.open(folder)) == 52


def test_small_frames_make_long_shards_and_large_frames_short_ones():
    assert steps_per_shard(Spec((512, 512, 4), "uint8", actions=1)) == 64  # of 1 MiB each
    assert steps_per_shard(Spec((8,), "float32", actions=1)) == 2**20
    assert steps_per_shard(Spec((2**13, 2**13), "uint8", actions=1)) == 1


def test_a_manifest_that_names_columns_which_the_files_lack_is_refused(tmp_path):
    with Intake(tmp_path / "log", SPEC) as intake:
        intake.add(rows(30))
    manifest = manifests.read(tmp_path / "log")
    for columns, said in ((("probability",), "instead of .*probability"), (("luck",), "damaged")):
        manifest.columns = columns
        manifest.write(tmp_path / "log")
        with pytest.raises(DataError, match=said):
            Dataset.open(tmp_path / "log")
