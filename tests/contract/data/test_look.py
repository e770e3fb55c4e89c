"""A look at a log warns of what may hinder learning, in one line each, and is quiet about good logs."""

from dataclasses import replace

import numpy as np
import pytest

from little import played
from optimist.data import Dataset, Recorder, Spec, from_arrays
from optimist.data.look import Look
from optimist.data.warnings import warnings

STEPS, LENGTH = 2000, 20


def log_of(**changes) -> Dataset:
    """A good log with some columns replaced: random vectors and actions, episodes of different lengths."""
    random = np.random.default_rng(0)
    ends = random.random(STEPS) < 1 / LENGTH
    columns = {
        "observations": random.normal(size=(STEPS, 4)),
        "actions": random.integers(3, size=STEPS),
        "rewards": random.normal(size=STEPS),
        "terminals": ends,
        "truncations": np.zeros(STEPS, bool),
        "actions_count": 3,
    }
    columns |= {name: value(columns) if callable(value) else value for name, value in changes.items()}
    if columns["actions"].dtype.kind == "f":
        columns["actions_count"] = None
    return from_arrays(**columns)


def every(count: int) -> np.ndarray:
    return np.arange(1, STEPS + 1) % count == 0


def vectors(columns: dict) -> np.ndarray:
    """Action vectors that follow from the observation, but for some noise."""
    noise = np.random.default_rng(1).normal(size=(STEPS, 1))
    return np.tanh(columns["observations"][:, :2]) + 0.05 * noise


def feature(number: int, values) -> dict:
    def changed(columns: dict) -> np.ndarray:
        columns["observations"][:, number] = values
        return columns["observations"]

    return {"observations": changed}


def test_a_good_log_gives_no_warning():
    assert warnings(log_of()) == []
    assert warnings(log_of().best(0.5)) == []


@pytest.mark.parametrize("game", ["gym/CartPole-v1", "minatar/breakout", "mujoco/Hopper"])
def test_logs_of_environments_give_no_warning(game, tmp_path):
    assert warnings(Dataset.open(played(tmp_path, game=game, rows=200))) == []


FOUND = {
    "every reward is 0": {"rewards": np.zeros(STEPS)},
    "every reward is 2, and no episode ends earlier": {
        "rewards": np.full(STEPS, 2.0),
        "terminals": every(20),
    },
    "sparse rewards: 2 of 2,000 steps, in 2 of 100 episodes, have another reward than 0": {
        "rewards": np.isin(np.arange(STEPS), (5, 500)),
        "terminals": every(20),
    },
    "the log is one episode of 1,999 steps without an end": {"terminals": np.zeros(STEPS, bool)},
    "no episode ends with a terminal step, and their lengths differ": {
        "terminals": np.zeros(STEPS, bool),
        "truncations": lambda columns: np.random.default_rng(0).random(STEPS) < 0.05,
    },
    "50 of 50 episodes have exactly 40 steps and end with a terminal step": {"terminals": every(40)},
    "the observation is always the same": {"observations": np.ones((STEPS, 4))},
    "feature 2 never changes": feature(2, 7.0),
    "features repeat others: 3 = 0;": {
        "observations": lambda columns: columns["observations"][:, [0, 1, 2, 0]]
    },
    "features have unequal scales: feature 1 spreads by 4.08e+04, feature 0 by": feature(
        1, 5e4 * (np.arange(STEPS) % 3 - 1)
    ),
    "feature 1 varies little compared with its size (5e+04 ± 1), and float32 holds it in steps": feature(
        1, 5e4 + np.arange(STEPS) % 2 * 2
    ),
    "feature 1: there are values more than 10 deviations from the mean, and train reads": feature(
        1, np.where(np.arange(STEPS) < 4, np.arange(STEPS) + 9.0, np.arange(STEPS) % 3 / 10)
    ),
    "action dimension 1 never changes": {"actions": lambda columns: columns["observations"][:, :2] * [1, 0]},
    "every action vector holds one 1 and else 0, as a coded choice": {
        "actions": lambda columns: np.eye(3)[columns["actions"]]
    },
    "action 3 is never taken: such": {"actions_count": 4},
    "action 0 is never taken: if your actions count from 1, subtract 1": {
        "actions": lambda columns: columns["actions"] + 1,
        "actions_count": 4,
    },
    "action 1 is taken in 97.": {
        "actions": lambda columns: np.where(every(50), 0, np.where(every(99), 2, 1))
    },
    "action 2 is taken in every step: there is nothing to compare": {
        "actions": np.full(STEPS, 2),
    },
    "action 0 is taken in every step": {"actions": np.zeros(STEPS, int), "actions_count": 1},
    "% of the actions are predicted from the observation (35% by the most common action alone)": {
        "actions": lambda columns: np.digitize(columns["observations"][:, 0], (-0.43, 0.43))
    },
    "% of the actions' variance is predicted from the observation: a narrow log": {"actions": vectors},
    "every complete episode has the same return, 1:": {
        "rewards": lambda columns: columns["terminals"].astype(float)
    },
    "the best tenth of the episodes (6, mean return 1) holds only": {
        "terminals": (np.arange(STEPS) < 10) | every(40),
        "rewards": lambda columns: np.where(np.arange(STEPS) < 10, 1.0, -every(40).astype(float)),
    },
    "the images are floats of up to 255, too large for networks": {
        "observations": np.random.default_rng(0).integers(256, size=(STEPS, 8, 8, 1)).astype(float)
    },
    "every image is the same": {"observations": np.full((STEPS, 8, 8), 9, np.uint8)},
    "the images are uint8 but hold only 0 to 5, and networks divide them by 255": {
        "observations": np.random.default_rng(0).integers(6, size=(STEPS, 8, 8)).astype(np.uint8)
    },
    "the images are uint8 but hold only 0 and 1": {
        "observations": np.random.default_rng(0).integers(2, size=(STEPS, 8, 8)).astype(np.uint8)
    },
}


@pytest.mark.parametrize("line", FOUND)
def test_a_hindrance_is_one_line(line):
    found = [each for each in warnings(log_of(**FOUND[line])) if line in each]
    assert len(found) == 1 and "\n" not in found[0] and len(found[0]) < 240


def test_a_rare_flag_loses_nothing_when_it_is_standardised():
    rare = log_of(**feature(1, np.arange(STEPS) < 4))
    assert not [line for line in warnings(rare) if "deviations from the mean" in line]


def test_what_train_does_by_itself_is_not_asked_for():
    unequal = log_of(**feature(1, 5e4 * (np.arange(STEPS) % 3 - 1)))
    [line] = [each for each in warnings(unequal) if "unequal scales" in each]
    assert line.endswith("; train standardises them") and "standardise them" not in line
    recorded = replace(unequal, provenance={"collection": {}})  # these are learned from as they are
    [line] = [each for each in warnings(recorded) if "unequal scales" in each]
    assert line.endswith("; standardise them: --observations standard")


@pytest.mark.parametrize(
    "good",
    [
        {"rewards": np.ones(STEPS)},  # the return is in the length, as in CartPole
        {"terminals": np.zeros(STEPS, bool), "truncations": every(50)},  # a time limit, as in HalfCheetah
        {"terminals": every(5)},  # short rounds of a fixed length
        {"observations": np.eye(9)[np.random.default_rng(0).integers(7, size=STEPS)]},  # a coded category
        {"observations": np.random.default_rng(0).integers(256, size=(STEPS, 8, 8)).astype(np.uint8)},
        {"actions": np.random.default_rng(0).uniform(-1, 1, (STEPS, 2))},
    ],
)
def test_what_is_usual_elsewhere_gives_no_warning(good):
    assert warnings(log_of(**good)) == []


def test_a_predictable_action_must_beat_the_most_common_one():
    """Nine tenths of one action and noise: nothing is predicted that the most common action does not give."""
    data = log_of(actions=np.where(np.random.default_rng(3).random(STEPS) < 0.92, 0, np.arange(STEPS) % 3))
    assert Look(data).predicted > 0.9
    assert warnings(data) == []


def test_ends_that_the_environment_told_are_trusted(tmp_path):
    """Freeway of MinAtar ends after a fixed number of steps: a terminal step of the game itself."""
    told, collected = log_of(terminals=every(40)), log_of(terminals=every(40), provenance={"collection": {}})
    assert len(warnings(told)) == 1 and warnings(collected) == []


def test_damaged_frames_are_a_line(tmp_path):
    path = played(tmp_path / "log", rows=50)
    frames = path / "frames-000000.arrow"
    content = bytearray(frames.read_bytes())
    content[len(content) // 2] ^= 1
    frames.write_bytes(content)
    assert "frames-000000.arrow is damaged" in warnings(Dataset.open(path))[-1]


def test_nan_in_recorded_frames_is_found():
    data = log_of()
    data.timeline.source.array[3:12, 1] = np.nan
    assert any("NaN or infinity" in line for line in warnings(data))


def test_a_view_is_looked_at_alone():
    data = log_of(rewards=(np.arange(STEPS) < 1000).astype(float))
    assert any("every reward is 0" in line for line in warnings(data.last(500)))
    assert Look(data.first(500)).rewards.usual == 1


def test_few_observations_of_large_frames_are_read(tmp_path, monkeypatch):
    """A look must not decode the whole log, and in a large one opens few files."""
    spec = Spec((40, 40, 1), "uint8", actions=2)
    random = np.random.default_rng(0)
    frames = random.integers(256, size=(300, 1, 40, 40, 1)).astype(np.uint8)
    with Recorder(tmp_path, spec, lanes=1, shard_steps=10) as recorder:
        for row in range(299):
            recorder.add(frames[row], [row % 2], [1.0], [False], [False], frames[row + 1])
    monkeypatch.setattr("optimist.data.look.MUCH", 1000)
    monkeypatch.setattr("optimist.data.look.SAMPLE", 60)
    monkeypatch.setattr("optimist.data.look.FEWEST", 60)
    monkeypatch.setattr("optimist.data.look.RUNS", 2)
    data = Dataset.open(tmp_path)
    assert len(Look(data).sample.actions) <= 60
    assert len(data.timeline.source._decoders) <= 10 < len(data.timeline.source.manifest.shards)
