"""Lanes in two halves are the same lanes, whichever half plays first."""

import numpy as np
import pytest

from optimist import envs
from optimist.envs import _halves
from optimist.errors import UsageError

pytestmark = pytest.mark.timeout(120)  # the emulator can wait for ever
GAME, LANES, ROWS = "atari/Breakout?max_steps=12", 3, 40


def actions(row: int) -> np.ndarray:
    return np.random.default_rng(row).integers(4, size=LANES)


def assert_same(one, other) -> None:
    for ours, theirs in zip(one, other, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def whole_and_halves():
    whole, halves = envs.make(GAME, lanes=LANES, seed=7), envs.make_halves(GAME, lanes=LANES, seed=7)
    assert [half.lanes for half in halves.halves] == [1, 2]
    assert_same([whole.reset()], [halves.reset()])
    return whole, halves


def test_the_halves_stepped_together_are_the_whole():
    whole, halves = whole_and_halves()
    for row in range(ROWS):
        assert_same(whole.step(actions(row)), halves.step(actions(row)))
    assert_same([whole.reset()], [halves.reset()])
    assert (halves.name, halves.spec, halves.lanes) == (whole.name, whole.spec, whole.lanes)
    assert halves.versions() == whole.versions()


def test_a_half_that_is_a_row_ahead_takes_the_same_steps():
    whole, halves = whole_and_halves()
    first, second = _halves.groups_of(halves)
    first.send(actions(0)[first.lanes])
    for row in range(ROWS):
        second.send(actions(row)[second.lanes])
        parts = [first.receive()]
        first.send(actions(row + 1)[first.lanes])
        parts.append(second.receive())
        assert_same(whole.step(actions(row)), _halves.joined(parts))


def test_a_group_of_an_environment_that_waits_takes_the_same_steps():
    one, other = (envs.make("minatar/breakout", lanes=LANES, seed=7) for _ in range(2))
    assert_same([one.reset()], [other.reset()])
    (group,) = _halves.groups_of(other)
    assert group.member.all() and len(group.member) == LANES
    for row in range(ROWS):
        group.send(actions(row) % 3)
        assert_same(one.step(actions(row) % 3), group.receive())


def test_a_reset_drops_the_step_that_is_being_played():
    one, other = (envs.make(GAME, lanes=LANES, seed=7) for _ in range(2))
    for play in (one, other):
        play.reset()
    one.send(actions(0))
    other.step(actions(0))
    assert_same([one.reset()], [other.reset()])
    assert_same(one.step(actions(1)), other.step(actions(1)))


def test_what_would_wait_for_ever_is_refused():
    play = envs.make(GAME, lanes=LANES)
    play.reset()
    with pytest.raises(UsageError, match="send"):
        play.receive()
    play.send(actions(0))
    with pytest.raises(UsageError, match="receive"):
        play.send(actions(1))
    play.receive()


@pytest.mark.parametrize(
    "name, lanes",
    [("minatar/breakout", 4), ("atari/Breakout", 1), ("playing_beside:RestorableFamily/breakout", 4)],
)
def test_what_cannot_play_in_halves_stays_whole(name, lanes):
    """A restorable environment is saved when all its lanes are at the same step."""
    assert len(_halves.groups_of(envs.make_halves(name, lanes=lanes))) == 1


def test_the_halves_of_a_family_of_ones_own():
    halves = envs.make_halves("playing_beside:Family/breakout", lanes=4)
    assert len(_halves.groups_of(halves)) == 2 and halves.encoding == "as in MinAtar"
