"""The recorder takes only steps that fit, and never records over what it does not know."""

import numpy as np
import pytest
from reference import SPECS, record

from optimist.data import Recorder, open_dataset
from optimist.errors import DataError


def step(**changes):
    good = {
        "observation": np.zeros((2, 6, 5, 1), np.uint8),
        "action": np.array([0, 3]),
        "reward": np.array([0.0, 1.0]),
        "terminal": np.array([True, True]),
        "truncated": np.array([False, False]),
        "next_observation": np.zeros((2, 6, 5, 1), np.uint8),
    }
    return good | changes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observation": np.zeros((6, 5, 1), np.uint8)}, "shape"),
        ({"observation": np.zeros((2, 6, 5, 1))}, "float64"),
        ({"next_observation": np.zeros((2, 6, 5, 4), np.uint8)}, "next_observation has shape"),
        ({"action": np.array([0, 4])}, "0 to 3"),
        ({"action": np.array([-1, 0])}, "0 to 3"),
        ({"action": np.array([0.5, 0.5])}, "float64"),
        ({"reward": np.array([np.nan, 0])}, "NaN"),
        ({"reward": np.array([0.0])}, "shape"),
        ({"reward": np.array(["a", "b"])}, "<U1"),
        ({"reward": np.array([None, 0.0])}, "object"),
        ({"terminal": np.array([0, 1])}, "bool"),
        ({"truncated": np.array([False])}, "shape"),
    ],
)
def test_a_step_that_does_not_fit_is_refused_in_one_line(tmp_path, changes, said):
    recorder = Recorder(tmp_path, SPECS["pixels"], lanes=2)
    with pytest.raises(DataError, match=said) as refused:
        recorder.add(**step(**changes))
    assert "\n" not in str(refused.value)
    assert recorder.steps == 0


def test_a_vector_action_must_be_finite(tmp_path):
    recorder = Recorder(tmp_path, SPECS["vectors"], lanes=1)
    frame = np.zeros((1, 7), np.float32)
    with pytest.raises(DataError, match="action holds NaN"):
        recorder.add(frame, [[0.0, np.inf]], [0.0], [False], [False], frame)


def test_a_step_must_begin_where_the_last_one_led(tmp_path):
    recorder = Recorder(tmp_path, SPECS["pixels"], lanes=2, shard_steps=2)
    recorder.add(**step(terminal=np.array([True, False])))
    with pytest.raises(DataError, match="lane 1"):
        recorder.add(**step(observation=np.ones((2, 6, 5, 1), np.uint8)))


def test_the_recorder_copies_what_it_is_given(tmp_path):
    frame = np.zeros((1, 6, 5, 1), np.uint8)
    with Recorder(tmp_path, SPECS["pixels"], lanes=1) as recorder:
        recorder.add(frame, [0], [0.0], [False], [True], frame)
        frame[:] = 9
    assert not open_dataset(tmp_path).tape.decoded().any()


def test_another_spec_or_an_old_manifest_is_not_recorded_over(tmp_path):
    record(tmp_path, SPECS["pixels"], rows=64)
    with pytest.raises(DataError, match="another folder"):
        Recorder(tmp_path, SPECS["planes"], lanes=1)
    old = (tmp_path / "manifest.json").read_text()
    record(tmp_path, SPECS["pixels"], rows=200)
    (tmp_path / "manifest.json").write_text(old)
    with pytest.raises(DataError, match="the manifest is old"):
        Recorder(tmp_path, SPECS["pixels"], lanes=1)


def test_provenance_is_kept_and_must_be_json(tmp_path):
    record(tmp_path, SPECS["pixels"], rows=3, provenance={"agent": "dqn"})
    record(tmp_path, SPECS["pixels"], rows=3, provenance={"note": "Größe"})
    assert open_dataset(tmp_path).provenance == {"agent": "dqn", "note": "Größe"}
    with pytest.raises(DataError, match="JSON"):
        Recorder(tmp_path, SPECS["pixels"], lanes=1, provenance={"array": np.zeros(2)})
