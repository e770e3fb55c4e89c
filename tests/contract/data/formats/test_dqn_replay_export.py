"""Exported logs equal those of the released logger, and importing them loses nothing."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from little import pixels
from optimist.data import Recorder, Spec, open_dataset
from optimist.errors import DataError
from replay_ring import Ring, export_dqn_replay, import_dqn_replay, put

pytestmark = pytest.mark.usefixtures("quick_disk")
SPEC = Spec((4, 3, 1), "uint8", actions=4, stack=4)


def steps_of(lengths, unfinished, seed=0, spec=SPEC):
    """Play that the format can hold: clipped rewards, terminals only, black final observations."""
    random = np.random.default_rng(seed)
    for number, length in enumerate([*lengths, unfinished]):
        frames = random.integers(1, 256, (length + 1, *spec.frame_shape)).astype(np.uint8)
        for step in range(length):
            ends = step == length - 1 and number < len(lengths)
            following = np.zeros_like(frames[0]) if ends else frames[step + 1]
            yield frames[step], int(random.integers(4)), float(random.integers(-1, 2)), ends, following


def recorded(path, lengths, unfinished):
    with Recorder(path, SPEC, lanes=1) as recorder:
        for frame, action, reward, ends, following in steps_of(lengths, unfinished):
            recorder.add(frame[None], [action], [reward], [ends], [False], following[None])
    return open_dataset(path)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.arrow"))}


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 25), min_size=1, max_size=8),
    unfinished=st.integers(0, 9),
    capacity=st.integers(5, 40),
)
def test_a_round_trip_gives_back_every_byte(tmp_path_factory, lengths, unfinished, capacity):
    folder = tmp_path_factory.mktemp("trip")
    dataset = recorded(folder / "data", lengths, unfinished)
    summary = export_dqn_replay(dataset, folder / "logs", capacity=capacity)
    assert summary.notes == () and summary.steps == len(dataset)
    import_dqn_replay(folder / "logs", folder / "again", actions_count=4)
    assert contents(folder / "again") == contents(folder / "data")


def test_a_small_log_is_not_padded_to_the_size_of_the_public_files(tmp_path):
    """Each of them has 1,000,000 entries: seven megabytes and a minute for ten thousand steps."""
    dataset = recorded(tmp_path / "data", [9, 4, 30], unfinished=3)
    export_dqn_replay(dataset, tmp_path / "logs")
    folder = tmp_path / "logs" / "replay_logs"
    files = folder.glob("*reward_ckpt.*.gz")
    rows = [len(np.load(io.BytesIO(gzip.decompress(file.read_bytes())))) for file in files]
    assert len(rows) == 1 and rows[0] < 80
    import_dqn_replay(tmp_path / "logs", tmp_path / "again", actions_count=4)
    assert open_dataset(tmp_path / "again").fingerprint == open_dataset(tmp_path / "data").fingerprint


@pytest.mark.parametrize("capacity", [21, 23, 200])
def test_the_files_are_the_released_loggers(tmp_path, capacity):
    lengths, unfinished = [9, 4, 1, 30, 7, 13, 22], 8
    dataset = recorded(tmp_path / "data", lengths, unfinished)
    export_dqn_replay(dataset, tmp_path / "logs", capacity=capacity)
    ring = Ring(tmp_path / "ring", capacity, (4, 3), every_add=True)
    for array in (ring.observation, ring.action, ring.reward, ring.terminal):
        array[:] = 0
    played = list(steps_of(lengths, unfinished))
    for frame, action, reward, ends, _ in played:
        ring.add(frame[..., 0], action, reward, int(ends))
    ring.add(played[-1][-1][..., 0], 0, 0.0, 0)
    ring.finish()
    written = sorted(path.name for path in (tmp_path / "logs" / "replay_logs").iterdir())
    assert written == sorted(path.name for path in ring.folder.iterdir())
    for name in written:
        ours, theirs = (
            gzip.decompress((f / name).read_bytes()) for f in (tmp_path / "logs" / "replay_logs", ring.folder)
        )
        assert ours == theirs, name  # headers included: they are numpy's own
        assert not np.load(io.BytesIO(ours)).dtype.hasobject


def test_what_the_format_cannot_hold_is_counted(tmp_path):
    dataset = pixels(tmp_path / "data", rows=60, lanes=3)
    episodes = dataset.episodes
    summary = export_dqn_replay(dataset, tmp_path / "logs", capacity=100)
    unfinished = int((~(episodes.terminal | episodes.truncated)).sum())
    left_out, cut, clipped = summary.notes
    assert unfinished == 3
    assert left_out == f"2 unfinished episodes left out, with {len(dataset) - summary.steps} steps"
    assert cut == f"{episodes.truncated.sum()} time-outs written as ends of the game"
    assert 0 < int(clipped.split()[0]) <= (np.abs(dataset.timeline.reward) > 1).sum()
    import_dqn_replay(tmp_path / "logs", tmp_path / "again", actions_count=3)
    again = open_dataset(tmp_path / "again")
    order = np.flatnonzero(episodes.terminal | episodes.truncated)
    order = order[np.argsort(episodes.time[order])]
    np.testing.assert_array_equal(again.episodes.lengths[:-1], episodes.lengths[order])
    first = dataset.starts[order[0]]
    frame = dataset.timeline.frames(first + dataset.timeline.episode_of(np.array([first])))
    np.testing.assert_array_equal(again.timeline.frames(np.array([0])), frame)


def test_a_view_is_exported_alone(tmp_path):
    dataset = recorded(tmp_path / "data", [9, 14, 6], 3)
    view = dataset.first(17)
    summary = export_dqn_replay(view, tmp_path / "logs", capacity=12)
    assert summary.steps == 17 and summary.notes == ()
    import_dqn_replay(tmp_path / "logs", tmp_path / "again", actions_count=4)
    again = open_dataset(tmp_path / "again").timeline
    np.testing.assert_array_equal(again.action, dataset.timeline.action[:17])
    np.testing.assert_array_equal(again.decoded(), dataset.timeline.frames(np.arange(19)))
    late = export_dqn_replay(dataset.last(5), tmp_path / "late", capacity=12)
    assert late.notes == ("1 episodes without their first steps, which are not in this view",)


@pytest.mark.parametrize(
    ("options", "said"), [({"capacity": 4}, "a capacity of 4"), ({"level": 10}, "a compression level of 10")]
)
def test_odd_options_are_refused(tmp_path, options, said):
    with pytest.raises(DataError, match=said):
        export_dqn_replay(recorded(tmp_path / "data", [3], 0), tmp_path / "logs", **options)


def test_an_export_needs_a_new_folder_clears_leftovers_and_gives_the_same_bytes(tmp_path):
    dataset, left = recorded(tmp_path / "data", [9, 4], 3), tmp_path / "one" / "replay_logs.partial"
    left.mkdir(parents=True)
    put(left / "add_count_ckpt.7.gz", np.array(1))
    for name in ("one", "two"):
        export_dqn_replay(dataset, tmp_path / name, capacity=10)
    one, two = (
        {p.name: p.read_bytes() for p in (tmp_path / n / "replay_logs").iterdir()} for n in ("one", "two")
    )
    assert one == two and "add_count_ckpt.7.gz" not in one and not left.exists()
    with pytest.raises(DataError, match="exists already"):
        export_dqn_replay(dataset, tmp_path / "one", capacity=10)
