"""Imported DQN Replay logs have exactly the logged transitions, wherever the borders of the dumps are."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optimist.data import open_dataset
from optimist.data.formats.dqn_replay import dumps
from optimist.data.verify import verify
from replay_ring import Ring, assert_same, expected, import_dqn_replay, imported, play

pytestmark = pytest.mark.usefixtures("quick_disk")


def assert_imports(ring: Ring, out):
    """The lines about an exact import, and how many lanes it has."""
    summary = import_dqn_replay(ring.folder, out)
    dataset = open_dataset(out)
    assert_same(imported(dataset), expected(ring))
    assert verify(out) == []
    assert summary.counts.steps == len(dataset)
    return summary.lines(), len(dataset.timeline.lane_starts)


def test_one_window_with_a_partial_dump(tmp_path):
    ring = play(Ring(tmp_path / "run", 100), [10, 7, 1], unfinished=5)
    ring.finish()
    lines, lanes = assert_imports(ring, tmp_path / "out")
    assert lines[0] == "22 steps in 4 episodes" and lanes == 1
    assert lines[1].startswith("left out: 1 last step with an unknown successor")
    assert lines[2:] == ["from 1 windows", "left out: 12 padding entries"]


@pytest.mark.parametrize("length", range(10, 22))
def test_a_border_at_every_place_around_an_end_and_its_padding(tmp_path, length):
    """The first episode ends just before, at and after the window's end."""
    ring = play(Ring(tmp_path / "run", 20), [length, 30, 9], unfinished=2)
    ring.finish()
    skipped = 0 not in ring.fresh
    assert skipped == (length in (13, 14, 15))  # the border is among the padding: no dump
    lines, _ = assert_imports(ring, tmp_path / "out")
    missing = sorted(set(range(max(ring.fresh))) - set(ring.fresh))
    assert any("missing, never dumped" in line for line in lines) == bool(missing)


AFTER_A_GAP = "3 steps after a gap have black frames in place of unknown ones"
MISSING = "note: 1 missing, never dumped or not fetched: window number"
LAST_TWICE = "note: suffix 2, written when the run ended, repeats the dump before it"


@pytest.mark.parametrize(
    ("lengths", "unfinished", "lost", "windows", "lanes", "line"),
    [
        ([50, 3, 4, 5, 6, 7, 30], 9, [], [*range(7)], 1, "from 7 windows"),  # an episode across several
        ([30, 2, 60], 0, [], [0, 2, 3, 4, 5], 2, f"{MISSING} 1"),  # the run wrote none
        ([100], 30, [2], [0, 1, 3, 4, 5, 6], 2, AFTER_A_GAP),  # one was not fetched
        ([45, 9, 8, 30], 3, [0, 1], [2, 3, 4, 5], 1, AFTER_A_GAP),
        # Neither the count nor the name of the last dump shows what was skipped before it: old slots do.
        ([30, 2], 6, [], [0, 2], 2, "note: suffix 1 does not continue suffix 0"),
        ([28], 5, [], [0, 1], 1, LAST_TWICE),  # a run that ends with a full dump
        ([28], 6, [], [0, 1, 2], 1, "from 3 windows"),  # and one that ends in the last slot
    ],
)
def test_windows_are_joined_or_their_gaps_are_said(tmp_path, lengths, unfinished, lost, windows, lanes, line):
    ring = play(Ring(tmp_path / "run", 20), lengths, unfinished=unfinished)
    ring.finish()
    for window in lost:
        ring.lose(window)
    assert sorted(ring.fresh) == windows
    lines, found = assert_imports(ring, tmp_path / "out")
    assert line in lines and found == lanes
    if line.startswith(MISSING):
        assert open_dataset(tmp_path / "out").provenance["missing_windows"] == "1"


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=9),
    unfinished=st.integers(0, 9),
    capacity=st.integers(5, 40),
    every_add=st.booleans(),
    lost=st.integers(0, 12),
    rows=st.integers(1, 50),
)
def test_any_log(tmp_path_factory, lengths, unfinished, capacity, every_add, lost, rows):
    folder = tmp_path_factory.mktemp("any")
    ring = Ring(folder / "run", capacity, (2, 2), every_add=every_add)
    play(ring, lengths, unfinished=unfinished)
    ring.finish()
    if lost in ring.fresh and lost != max(ring.fresh):
        ring.lose(lost)
    assume(expected(ring) and shows_a_skip(ring))
    with pytest.MonkeyPatch.context() as patch:  # as many frames are read together as in a large file
        patch.setattr(dumps, "BYTES_AT_ONCE", rows * 4)
        assert_imports_lanes_in_order(ring, folder / "out")


def shows_a_skip(ring):
    """Only the old slots of the last dump show that the window before it was skipped; a few may be equal by
    chance."""
    last = max(ring.fresh)
    return last - 1 in ring.fresh or ring.fresh[last] < ring.capacity - 4


def assert_imports_lanes_in_order(ring, out):
    """A stretch without a whole step makes no lane, so lanes are compared by their order."""
    import_dqn_replay(ring.folder, out)
    found, wanted = imported(open_dataset(out)), expected(ring)
    numbers = {stretch: lane for lane, stretch in enumerate(sorted({row[-1] for row in wanted}))}
    assert_same(found, [(*row[:-1], numbers[row[-1]]) for row in wanted])
    assert verify(out) == []


def test_actions_and_provenance(tmp_path):
    ring = play(Ring(tmp_path / "Breakout" / "1", 50), [20, 30, 20])
    ring.finish()
    options = {"environment": "atari/Breakout", "actions_count": 18}
    seen, folder = [], tmp_path / "Breakout" / "1"
    import_dqn_replay(folder, tmp_path / "out", lambda *counts: seen.append(counts), **options)
    assert seen == sorted(seen) and seen[-1] == (70, 70)
    dataset = open_dataset(tmp_path / "out")
    assert dataset.spec.actions == 18 and dataset.spec.stack == 4 and dataset.spec.frame_shape == (6, 5, 1)
    facts = dataset.provenance
    assert facts["source"] == "Breakout/1" and facts["environment"] == "atari/Breakout"
    assert facts["rewards"] == "clipped" and facts["capacity"] == 50 and facts["windows"] == "0 to 1"
    assert str(tmp_path) not in str(facts)
