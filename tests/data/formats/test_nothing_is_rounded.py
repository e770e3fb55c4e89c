"""A number of a log that float32 cannot hold is refused with its row; it was rounded without a word."""

import h5py
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from test_nothing_leaves import exported

from optimist.cli.main import main
from optimist.data import Spec, formats, from_arrays, open_dataset
from optimist.data.intake import Intake
from optimist.errors import DataError

STEPS = 400
NOISE = np.random.default_rng(0).normal(size=STEPS)
WHOLE = "rewards hold whole numbers that float32 cannot hold .first in row {row}.: give them in a larger unit"
NEAR = "rewards are near 1e.09, and float32 holds them in steps of 64: subtract a constant"
LOST = {
    "2**24 + 1": (2**24 + np.arange(STEPS) % 8.0, WHOLE.format(row=1)),
    "int32": ((2**24 + np.arange(STEPS) % 8).astype(np.int32), WHOLE.format(row=1)),
    "1e9 + noise": (1e9 + NOISE, NEAR),
    "nanoseconds": (1_700_000_000_000_000_001 + np.arange(STEPS), WHOLE.format(row=0)),
}
KEPT = {
    "tenths": 0.1 * np.arange(STEPS),
    "one penalty": np.where(np.arange(STEPS) == 7, -1e9, NOISE),
    "even numbers": 2**24 + 2 * np.arange(STEPS),
    "always the same": np.full(STEPS, 1e9),
}


def columns(rewards) -> dict[str, np.ndarray]:
    return {
        "observations": NOISE[:, None].astype(np.float32),
        "actions": np.arange(STEPS) % 2,
        "rewards": np.asarray(rewards),
        "terminals": np.arange(STEPS) % 10 == 9,
        "truncations": np.zeros(STEPS, bool),
    }


def in_memory(folder, rewards):
    return from_arrays(**columns(rewards))


def by_parts(folder, rewards):
    log = columns(rewards)
    with Intake(folder / "data", Spec((1,), "float32", actions=2)) as intake:
        for start in (0, 200):
            intake.add({name: values[start : start + 200] for name, values in log.items()})


def npz(folder, rewards):
    np.savez(folder / "log.npz", **columns(rewards))
    return read("npz", folder / "log.npz", folder)


def hdf5(folder, rewards):
    with h5py.File(folder / "log.hdf5", "w") as file:
        for name, values in columns(rewards).items():
            file[name] = values
    return read("hdf5", folder / "log.hdf5", folder)


def minari(folder, rewards):
    log = exported(folder, "minari")
    with h5py.File(log / "data" / "main_data.hdf5", "a") as file:
        start = 0
        for number in range(len(file)):
            count = len(file[f"episode_{number}/rewards"])
            del file[f"episode_{number}/rewards"]
            file[f"episode_{number}/rewards"] = np.asarray(rewards)[start : start + count]
            start += count
    return read("minari", log, folder)


def table(folder, rewards):
    log = columns(rewards)
    parquet.write_table(pa.table({**log, "observations": NOISE}), folder / "log.parquet")
    return read("parquet", folder / "log.parquet", folder)


def read(name, log, folder):
    found = formats.find(name)
    return found.read(log, folder / "again")


WAYS = [in_memory, by_parts, npz, hdf5, minari, table]


@pytest.mark.parametrize("kind", LOST)
@pytest.mark.parametrize("way", WAYS)
def test_rewards_that_float32_would_round_are_refused(tmp_path, way, kind):
    rewards, told = LOST[kind]
    with pytest.raises(DataError, match=told):
        way(tmp_path, rewards)


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("way", WAYS)
def test_rewards_that_lose_no_difference_are_taken(tmp_path, way, kind):
    way(tmp_path, KEPT[kind])


@pytest.mark.parametrize("column", ["actions", "observations"])
def test_vectors_are_judged_alike(column):
    log = columns(np.zeros(STEPS))
    log[column] = np.stack([NOISE, 1e9 + NOISE], axis=1)
    with pytest.raises(DataError, match=rf"{column} .feature 1. are near 1e.09"):
        from_arrays(**log)


def test_very_large_numbers_are_not_called_whole(tmp_path):
    log = columns(np.zeros(STEPS))
    log["observations"] = 1e30 * NOISE[:, None]
    from_arrays(**log)
    log["observations"] = 1e300 * NOISE[:, None]
    with pytest.raises(DataError, match="NaN or infinity|beyond"):
        from_arrays(**log)


def test_an_action_of_the_smallest_whole_number_opens_again(tmp_path):
    log = columns(np.zeros(STEPS))
    log["actions"] = np.where(np.arange(STEPS) % 2, -(2**63), 5)
    np.savez(tmp_path / "log.npz", **log)
    assert main(["data", "import", str(tmp_path / "log.npz"), "--out", str(tmp_path / "data")]) == 0
    assert open_dataset(tmp_path / "data").spec.action_names == (-(2**63), 5)
    assert main(["data", "verify", str(tmp_path / "data")]) == 0
