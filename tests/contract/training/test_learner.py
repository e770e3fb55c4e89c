"""One learner trains every agent: chunks, fused seeds and stretches change nothing, and periods are kept."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fuse import Bare
from optimist.agents._agent import Objective
from optimist.agents.rem import Rem
from optimist.data.transition import Spec, Transition
from optimist.equations.optimizers import Adam
from optimist.errors import UsageError
from optimist.training.learner import Learner, advance, check_seeds, if_due, pays, scan_in_stretches, select

SPEC = Spec(frame_shape=(5,), frame_dtype="float32", actions=3)
REM = Learner(Rem(columns=4, optimizer=Adam(learning_rate=1e-3), target_period=5), SPEC)


def transitions(count: int = 40) -> Transition:
    rng = np.random.default_rng(1)
    observation, next_observation = rng.normal(size=(2, count, 5)).astype(np.float32)
    return Transition(
        observation=observation,
        action=rng.integers(3, size=count).astype(np.int32),
        reward=rng.normal(size=count).astype(np.float32),
        discount=np.full(count, 0.9, np.float32),
        next_observation=next_observation,
    )


def rows(resident: Transition, item) -> Transition:
    return jax.tree.map(lambda column: column[item], resident)


def numbered_rows(steps: int, seeds: tuple[int, ...]) -> np.ndarray:
    """Eight rows per step, other ones for every seed; (steps, seeds, 8)."""
    orders = [np.random.default_rng(seed).integers(40, size=(steps, 8)) for seed in seeds]
    return np.stack(orders, axis=1)


def train(learner: Learner, seeds: tuple[int, ...], chunks: tuple[int, ...]):
    """The final state, and the losses of all chunks joined."""
    state, items, parts = learner.init(seeds), numbered_rows(sum(chunks), seeds), []
    for length in chunks:
        now, items = items[:length], items[length:]
        state, losses = advance(learner, state, rows, transitions(), now)
        parts.append(losses)
    return state, jax.tree.map(lambda *series: np.concatenate(series), *parts)


def assert_same_bits(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


@pytest.mark.parametrize(
    "seeds",
    [pytest.param((3,), id="one seed"), pytest.param((3, 4, 5), id="three seeds", marks=pytest.mark.slow)],
)
def test_chunks_leave_every_bit_as_it_is(seeds):
    assert_same_bits(train(REM, seeds, chunks=(12,)), train(REM, seeds, chunks=(5, 7)))


def test_fused_seeds_are_each_the_seed_alone():
    seeds = (3, 4, 5)
    together, losses = train(REM, seeds, chunks=(12,))
    for place, seed in enumerate(seeds):
        alone, alone_losses = train(REM, (seed,), chunks=(12,))
        np.testing.assert_allclose(losses["q"][:, place], alone_losses["q"][:, 0], rtol=1e-5)
        for group in ("params", "targets", "slots", "key"):
            fused, single = getattr(together, group), getattr(alone, group)
            for ours, theirs in zip(jax.tree.leaves(fused), jax.tree.leaves(single), strict=True):
                np.testing.assert_allclose(ours[place], theirs[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "two seeds"])
def test_losses_have_one_row_per_step_and_one_column_per_seed(seeds):
    state, losses = train(REM, seeds, chunks=(7,))
    assert {name: series.shape for name, series in losses.items()} == {"q": (7, len(seeds))}
    assert state.step.shape == ()
    assert state.step == 7
    for leaf in jax.tree.leaves(state._replace(step=None)):
        assert leaf.shape[0] == len(seeds)


def test_a_run_starts_from_its_seed_with_a_target_of_its_own():
    state = REM.init((3, 4))
    assert_same_bits(state.params, state.targets)
    for leaf, copy in zip(jax.tree.leaves(state.params), jax.tree.leaves(state.targets), strict=True):
        assert leaf.unsafe_buffer_pointer() != copy.unsafe_buffer_pointer()
    assert_same_bits(state, REM.init((3, 4)))
    weight = state.params["q"]["weight"]
    assert not np.allclose(weight[0], weight[1])


def test_the_shapes_of_a_state_are_known_without_making_it():
    shapes, state = REM.shapes((3, 4)), REM.init((3, 4))
    assert jax.tree.structure(shapes) == jax.tree.structure(state)
    for shape, leaf in zip(jax.tree.leaves(shapes), jax.tree.leaves(state), strict=True):
        assert (shape.shape, shape.dtype) == (leaf.shape, leaf.dtype)


def test_no_seeds_equal_seeds_and_seeds_out_of_range_are_refused():
    for seeds in ((), (1, 1), (-1,), (2**32,)):
        with pytest.raises(UsageError, match="give at least one, each once"):
            check_seeds(seeds)


# Toys whose every step can be followed by hand.


@dataclass(frozen=True, kw_only=True)
class Toy(Bare):
    """Two vectors, trained by whatever objectives it is given."""

    given: tuple[Objective, ...]

    def init(self, key, spec):
        first_key, second_key = jax.random.split(key)
        return {"first": jax.random.normal(first_key, (3,)), "second": jax.random.normal(second_key, (3,))}

    def objectives(self, spec):
        return self.given


def toy(*given: Objective) -> Learner:
    return Learner(Toy(given=given, optimizer=Adam(learning_rate=0.01), target_period=4), SPEC)


def squared(vector):
    return 0.5 * (vector**2).sum()


def first_to_zero(params, targets, batch, key):
    return squared(params["first"])


def second_to_first(params, targets, batch, key):
    return squared(params["second"] - params["first"])


def states_after_each_step(learner: Learner, steps: int):
    """Copies of the states before and after each step, with the losses of the step."""
    state = learner.init((0,))
    seen = [(jax.tree.map(np.array, state), None)]
    for item in numbered_rows(steps, (0,)):
        state, losses = advance(learner, state, rows, transitions(), item[None])
        seen.append((jax.tree.map(np.array, state), losses))
    return seen


def changed(before, after) -> bool:
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return any(not np.array_equal(a, b) for a, b in pairs)


def test_an_objective_of_period_two_updates_every_other_step():
    learner = toy(Objective("first", first_to_zero), Objective("second", second_to_first, period=2))
    seen = states_after_each_step(learner, steps=6)
    for step in range(6):
        (before, _), (after, _) = seen[step], seen[step + 1]
        assert changed(before.params["first"], after.params["first"])
        assert changed(before.params["second"], after.params["second"]) == (step % 2 == 0)
        assert changed(before.slots["second"], after.slots["second"]) == (step % 2 == 0)
        assert changed(before.targets, after.targets) == (step % 4 == 0)


def test_an_objective_changes_only_its_own_group():
    seen = states_after_each_step(toy(Objective("second", second_to_first)), steps=2)
    (before, _), (after, _) = seen[0], seen[-1]
    assert changed(before.params["second"], after.params["second"])
    assert not changed(before.params["first"], after.params["first"])
    assert not changed(before.slots["first"], after.slots["first"])


def test_a_later_objective_sees_what_an_earlier_one_has_done():
    learner = toy(Objective("first", first_to_zero), Objective("second", second_to_first))
    (before, _), (after, losses) = states_after_each_step(learner, steps=1)
    gap = before.params["second"][0] - after.params["first"][0]
    np.testing.assert_allclose(losses["second"][0, 0], 0.5 * sum(gap**2), rtol=1e-5)


def drawn(group: str) -> Callable:
    """A loss that is nothing but its random draw."""
    return lambda params, targets, batch, key: jax.random.uniform(key) + 0 * params[group].sum()


def test_no_two_steps_seeds_or_objectives_share_a_draw():
    learner = toy(Objective("first", drawn("first")), Objective("second", drawn("second")))
    _, losses = train(learner, seeds=(0, 1, 2), chunks=(3, 2))
    draws = np.concatenate([losses["first"].ravel(), losses["second"].ravel()])
    assert len(set(draws.tolist())) == 2 * 3 * 5


def test_silent_broadcasting_in_a_loss_is_an_error():
    def careless(params, targets, batch, key):
        return (batch.reward[:, None] - batch.discount).mean() + params["first"].sum()

    with pytest.raises(ValueError, match="rank_promotion"):
        train(toy(Objective("first", careless)), seeds=(0,), chunks=(1,))


@pytest.mark.parametrize("due", [False, True])
def test_an_accelerator_computes_both_and_keeps_what_is_due(due):
    def one(offset):
        return lambda: {"q": jnp.arange(3.0) + offset}

    for chosen in (if_due(due, one(0), one(10)), select(one(0), one(10), due)):
        np.testing.assert_array_equal(chosen["q"], one(0 if due else 10)()["q"])


PERIOD = 7
LEARNER = Learner(Rem(columns=4, optimizer=Adam(learning_rate=1e-3), target_period=PERIOD), SPEC)
# Each is compiled once for a number of steps, whatever was before them.
WALK = jax.jit(partial(scan_in_stretches, LEARNER.descended, follow=LEARNER.followed, period=PERIOD))
SCAN = jax.jit(partial(jax.lax.scan, LEARNER.update))


def batches(steps: int) -> Transition:
    random = np.random.default_rng(1)
    observation, next_observation = random.normal(size=(2, steps, 8, 5)).astype(np.float32)
    return Transition(
        observation=observation,
        action=random.integers(3, size=(steps, 8)).astype(np.int32),
        reward=random.normal(size=(steps, 8)).astype(np.float32),
        discount=np.full((steps, 8), 0.9, np.float32),
        next_observation=next_observation,
    )


@pytest.mark.parametrize("before", [0, 1, 6], ids=lambda steps: f"after {steps} steps")
@pytest.mark.parametrize("steps", [1, 6, 23])
def test_stretches_take_the_steps_of_a_scan(steps, before):
    """From the first step, where the target moves at once, and from the middle and the end of a period."""
    one = jax.tree.map(lambda leaf: leaf[0], LEARNER.init((3,))._replace(step=np.zeros(1, np.int32)))
    begun, _ = SCAN(one, batches(before)) if before else (one, None)
    found, expected = WALK(begun, batches(steps)), SCAN(begun, batches(steps))
    assert int(found[0].step) == before + steps
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_stretches_pay_for_the_atari_network_and_not_for_a_small_one():
    atari, minatar = Spec((84, 84, 1), "uint8", actions=18, stack=4), Spec((10, 10, 4), "bool", actions=6)
    targets = [Learner(Rem(), spec).shapes((0, 1)).targets for spec in (atari, minatar)]
    assert [pays(each, seeds=2, period=2_000) for each in targets] == [True, False]
    assert not pays(targets[0], seeds=2, period=1)
