"""What an online agent remembers is what it lived through: the recording says the same."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from little import PIXELS, random_play, small
from optimist.data import Dataset, Recorder, Sampler, transitions
from optimist.training.learner import Learner
from optimist.training.play.replay import Replay
from optimist.training.settings import Collection

LANES = 3
SLOTS = 17
SETTINGS = Collection(window=SLOTS * LANES, lanes=LANES, warm_up=0, gamma=0.9, clip_rewards=0.5, batch=8)


def lived(path, *, stack: int, rows: int):
    """A replay and a recording of the same play, and which steps were truncated, (rows, lanes)."""
    spec = replace(PIXELS, stack=stack)
    replay, truncations = new_replay(spec), []
    with Recorder(path, spec, lanes=LANES) as recorder:
        for step in random_play(spec, rows=rows, lanes=LANES):
            recorder.add(*step)
            replay.add(*step[:5])
            truncations.append(step[4])
    return replay, Dataset.open(path), np.array(truncations)


def new_replay(spec, settings=SETTINGS) -> Replay:
    learner = Learner(small("dqn"), spec)
    return Replay(learner, learner.init((0,)), settings, seeds=(0,))


def recalled(replay: Replay, row: np.ndarray, lane: np.ndarray):
    """The transitions of these vector steps out of the window."""
    return jax.jit(replay.recall)(replay._window, np.stack([row % SLOTS, lane]).astype(np.int32))


def recorded(data: Dataset, row: np.ndarray, lane: np.ndarray):
    """The same out of the recording, found by the time at which they happened."""
    place = np.argsort(data.timeline.time)[row * LANES + lane]
    sampler = Sampler(data, gamma=SETTINGS.gamma, clip=SETTINGS.clip_rewards)
    return transitions(sampler, place, data.timeline.frames)


def remembered(rows: int, stack: int, truncations: np.ndarray):
    """Every step whose successor and stack are in the window, except the truncated; by counting."""
    first = 0 if rows <= SLOTS else rows - SLOTS + stack - 1
    return np.array(
        [(row, lane) for row in range(first, rows - 1) for lane in range(LANES) if not truncations[row, lane]]
    ).T


def assert_same(ours, theirs):
    goes_on = np.asarray(theirs.discount) > 0
    for name in ("observation", "action", "reward", "discount"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    # After a terminal step nothing is looked at: the discount is zero.
    np.testing.assert_array_equal(ours.next_observation[goes_on], theirs.next_observation[goes_on])


@pytest.mark.parametrize("rows", [9, SLOTS, SLOTS + 1, 60], ids=["young", "full", "just over", "often over"])
@pytest.mark.parametrize("stack", [1, 4])
def test_recalled_transitions_are_the_recorded_ones(tmp_path, stack, rows):
    replay, data, truncations = lived(tmp_path, stack=stack, rows=rows)
    row, lane = remembered(rows, stack, truncations)
    assert_same(recalled(replay, row, lane), recorded(data, row, lane))


def test_the_next_action_of_a_recalled_transition_is_the_recorded_one(tmp_path):
    replay, data, truncations = lived(tmp_path, stack=1, rows=60)
    row, lane = remembered(60, 1, truncations)
    replay.recall = replace(replay.recall, next_actions=True)
    ours = recalled(replay, row, lane)
    place = np.argsort(data.timeline.time)[row * LANES + lane]
    theirs = transitions(Sampler(data, next_actions=True), place, data.timeline.frames)
    np.testing.assert_array_equal(ours.next_logged, theirs.next_logged)
    np.testing.assert_array_equal(
        ours.next_action[theirs.next_logged], theirs.next_action[theirs.next_logged]
    )
    assert theirs.next_logged.any() and not theirs.next_logged.all()


@pytest.mark.parametrize("rows", [9, 60])
@pytest.mark.parametrize("stack", [1, 4])
def test_draws_are_exactly_the_steps_that_can_be_recalled(tmp_path, stack, rows):
    replay, _, truncations = lived(tmp_path, stack=stack, rows=rows)
    slot, lane = replay.draw(0, 400, 32).swapaxes(0, 2)[:, 0].reshape(2, -1)
    row, known = remembered(rows, stack, truncations)
    expected = {(int(r) % SLOTS, int(n)) for r, n in zip(row, known, strict=True)}
    assert set(zip(slot.tolist(), lane.tolist(), strict=True)) == expected
    counts = np.bincount(slot * LANES + lane, minlength=SLOTS * LANES)
    counts = counts[counts > 0]
    mean = counts.mean()
    assert ((counts - mean) ** 2 / mean).sum() < len(counts) + 6 * np.sqrt(2 * len(counts))


def test_draws_depend_on_the_update_and_on_nothing_else(tmp_path):
    replay, _, _ = lived(tmp_path, stack=1, rows=30)
    np.testing.assert_array_equal(replay.draw(7, 1, 8), replay.draw(7, 1, 8))
    assert not np.array_equal(replay.draw(7, 1, 8), replay.draw(8, 1, 8))
    assert replay.draw(0, 5, 8).shape == (5, 1, 2, 8)


def test_every_seed_draws_from_its_own_lanes_alone(tmp_path):
    learner, seeds = Learner(small("dqn"), replace(PIXELS, stack=1)), (3, 5)
    replay = Replay(
        learner, learner.init(seeds), Collection(lanes=2, window=2 * SLOTS, batch=8, clip_rewards=1.0), seeds
    )
    for step in random_play(PIXELS, rows=12, lanes=4):
        replay.add(*step[:5])
    drawn = replay.draw(0, 300, 32)
    assert drawn.shape == (300, 2, 2, 32)
    for place, lanes in enumerate([{0, 1}, {2, 3}]):
        slot, lane = drawn[:, place].swapaxes(0, 1).reshape(2, -1)
        assert set(lane.tolist()) == lanes
        assert set(slot.tolist()) <= set(range(11))  # the last row has no successor yet
        assert not replay._truncated[slot, lane].any()


def test_nobody_learns_before_every_seed_can(tmp_path):
    learner, seeds = Learner(small("dqn"), replace(PIXELS, stack=1)), (3, 5)
    settings = Collection(lanes=1, window=SLOTS, batch=8, warm_up=0, update_period=1, clip_rewards=1.0)
    replay = Replay(learner, learner.init(seeds), settings, seeds)
    steps = [step[:4] for step in random_play(PIXELS, rows=3, lanes=2)]
    replay.add(*steps[0], np.array([False, True]))  # the second seed's only step has no known successor
    replay.add(*steps[1], np.zeros(2, bool))
    replay.learn(2)
    assert replay.state.step == 0
    replay.add(*steps[2], np.zeros(2, bool))
    replay.learn(3)
    assert replay.state.step == 3


@pytest.mark.parametrize("rows", [5, 40])
@pytest.mark.parametrize("stack", [1, 4])
def test_a_refilled_memory_is_the_one_that_was_lost(tmp_path, stack, rows):
    before, data, truncations = lived(tmp_path, stack=stack, rows=rows)
    after = new_replay(data.spec)
    after.refill(tmp_path, len(data))
    first = max(0, rows - SLOTS)
    row, lane = remembered(rows, stack, truncations)
    row, lane = row[row >= first + stack - 1], lane[row >= first + stack - 1]
    assert_same(recalled(after, row, lane), recorded(data, row, lane))


def test_no_transition_leads_from_one_session_into_the_next(tmp_path):
    """Three sessions of play into one recording; the last step of each has no successor in the window."""
    for session in range(3):
        with Recorder(tmp_path, PIXELS, lanes=LANES) as recorder:
            for step in random_play(PIXELS, rows=5, lanes=LANES, seed=session):
                recorder.add(*step)
    replay = new_replay(PIXELS)
    replay.refill(tmp_path, 15 * LANES)
    replay.add(*list(random_play(PIXELS, rows=1, lanes=LANES, seed=9))[0][:5])
    timeline = Dataset.open(tmp_path).timeline
    terminal = timeline.terminal[np.argsort(timeline.time)].reshape(-1, LANES)
    slot, lane = replay.draw(0, 300, 32).swapaxes(0, 2)[:, 0].reshape(2, -1)
    drawn = set(zip(slot.tolist(), lane.tolist(), strict=True))
    last = {(row, lane) for row in (4, 9, 14) for lane in range(LANES) if not terminal[row, lane]}
    assert last and not drawn & last
    assert {row for row, _ in drawn} > {3, 8, 13}


def test_updates_wait_until_there_is_something_to_learn_from_and_are_made_up_for():
    settings = replace(SETTINGS, update_period=1)
    replay, steps = new_replay(PIXELS, settings), list(random_play(PIXELS, rows=2, lanes=LANES))
    replay.learn(0)
    replay.add(*steps[0][:4], np.ones(LANES, bool))
    replay.learn(LANES)
    replay.add(*steps[1][:4], np.zeros(LANES, bool))
    replay.learn(2 * LANES)  # the only step with a successor was truncated
    assert replay.state.step == 0
    replay.add(*steps[1][:4], np.zeros(LANES, bool))
    replay.learn(3 * LANES)
    assert replay.state.step == 3 * LANES


@pytest.mark.parametrize("window", [1, 2, 10])
def test_the_smallest_window_still_holds_a_transition(window):
    replay = new_replay(PIXELS, replace(SETTINGS, window=window))
    for step in random_play(PIXELS, rows=30, lanes=LANES):
        replay.add(*step[:4], np.zeros(LANES, bool))
    slot, _ = replay.draw(0, 50, 8).swapaxes(0, 2)[:, 0].reshape(2, -1)
    assert len(set(slot.tolist())) >= 2


def test_what_is_drawn_a_row_ahead_is_what_would_be_drawn_then(tmp_path):
    replay, _, _ = lived(tmp_path, stack=1, rows=SLOTS + 5)
    for step in random_play(replace(PIXELS, stack=1), rows=4, lanes=LANES, seed=9):
        ahead = replay.draw(30, 6, 50, later=1)
        replay.add(*step[:5])
        np.testing.assert_array_equal(ahead, replay.draw(30, 6, 50))


def test_what_was_prepared_is_learned_from(tmp_path):
    (one, _, _), (other, _, _) = (lived(tmp_path / name, stack=1, rows=SLOTS) for name in "ab")
    step = SETTINGS.warm_up + 40
    one.prepare(step)
    (key, items), drawn = one._prepared, []
    one.draw = lambda *how, **more: drawn.append(how)  # nothing is drawn again
    for replay in (one, other):
        for row in random_play(replace(PIXELS, stack=1), rows=1, lanes=LANES, seed=4):
            replay.add(*row[:5])
        replay.learn(step)
    assert not drawn and key[0] == SLOTS + 1 and len(items)
    jax.tree.map(np.testing.assert_array_equal, one.state, other.state)


def test_rows_ahead_are_drawn_without_knowing_them(tmp_path):
    replay, _, truncations = lived(tmp_path, stack=1, rows=SLOTS)
    _, nothing, _ = replay.draw_ahead(3, 0)  # in the warm-up
    assert nothing.shape == (3, 0, 1, 2, SETTINGS.batch)
    slots, items, spares = replay.draw_ahead(3, 2)
    np.testing.assert_array_equal(slots, [0, 1, 2])  # over the oldest
    np.testing.assert_array_equal(items[0], replay.draw(replay._updates, 2, SETTINGS.batch))
    assert items.shape == spares.shape == (3, 2, 1, 2, SETTINGS.batch)
    # Of what is known none is truncated; in the third row's slots 0 and 1 are rows that nobody knows.
    slot, lane = items[2][:, 0, 0], items[2][:, 0, 1]
    known = slot >= 2
    assert not truncations[slot[known], lane[known]].any()
    # Spares are known and stay: rows 3 to 15, because row 16 has no successor yet.
    slot, lane = spares[..., 0, 0, :].ravel(), spares[..., 0, 1, :].ravel()
    assert slot.min() >= 3 and slot.max() <= SLOTS - 2 and not truncations[slot, lane].any()


@pytest.mark.parametrize(
    "lanes, period, same", [(4, 4, 1), (8, 4, 2), (4, 8, None), (2, 4, None), (3, 4, None)]
)
def test_rows_take_the_same_number_of_updates_or_not(lanes, period, same):
    settings = replace(SETTINGS, window=50 * LANES, warm_up=0, update_period=period)
    replay = new_replay(replace(PIXELS, stack=1), settings)
    for step in random_play(replace(PIXELS, stack=1), rows=4, lanes=LANES):
        replay.add(*step[:5])
    assert replay.due_at_each(lanes * np.arange(1, 20)) == same
    assert replay.due_at_each(np.zeros(5, int)) == 0
    assert replay.due_at_each(lanes * np.arange(1, 26)) is None  # more than half of the window would go
