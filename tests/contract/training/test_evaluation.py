"""An evaluation counts every episode it begins, of every seed alike, and can be repeated exactly."""

import dataclasses
from dataclasses import dataclass

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse import Bare
from optimist import agents, envs
from optimist.data import Spec
from optimist.errors import UsageError
from optimist.training.evaluation import EpisodeScore, Lanes, Series, check_playable, evaluate, mean_scores
from optimist.training.learner import Learner
from optimist.training.settings import is_due


class Pay(gymnasium.Env):
    """Four steps, each worth its action."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._left = 4
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._left -= 1
        return np.zeros(1, np.float32), float(action), False, self._left == 0, {}


class Coin(Pay):
    """Heads is an episode of one step worth nothing, tails one of nine steps worth 1 at its end."""

    def reset(self, **how):
        seen = super().reset(**how)
        self._left = 9 if self.np_random.random() < 0.5 else 1
        self._long = self._left == 9
        return seen

    def step(self, action):
        seen, _, _, over, info = super().step(action)
        return seen, float(over and self._long), over, False, info


@pytest.fixture(scope="module", autouse=True)
def registered():
    names = {"Coin-v0": Coin, "Pay-v0": Pay}
    for name, kind in names.items():
        gymnasium.register(name, entry_point=kind)
    yield
    for name in names:
        gymnasium.registry.pop(name)


@pytest.mark.parametrize("lanes", [1, 3, 4, 50])
def test_an_evaluation_is_due_where_a_multiple_is_passed_and_at_the_end(lanes):
    taken = range(0, 100 + lanes, lanes)
    for step in taken:
        passes = any(each % 20 == 0 for each in range(max(step - lanes + 1, 1), step + 1))
        assert is_due(step, every=20, steps=90, lanes=lanes) == (passes or step >= 90)


@dataclass(frozen=True, kw_only=True)
class Stubborn(Bare):
    """Its only parameter is its only action."""

    def init(self, key, spec):
        return {"choice": jnp.int32(0)}

    def action(self, spec, params, observation, key):
        return params["choice"]


LEARNER = Learner(Stubborn(), Spec((1,), "float32", actions=3))


def choosing(*choices: int) -> dict:
    return {"choice": jnp.array(choices, jnp.int32)}


@pytest.mark.parametrize("length", [{"episodes": 400}, {"episodes": 0, "steps": 2_000}], ids=str)
def test_long_episodes_weigh_as_much_as_short_ones(length):
    """The first 400 to finish among endlessly playing lanes would be long in one case of ten or fewer; of the
    first to finish within so many steps on 16 lanes, far more would be short."""
    rows = evaluate(LEARNER, choosing(0), "gym/Coin-v0", seeds=(0,), **length)
    scores, lengths = np.array([(row.score, row.length) for row in rows]).T
    np.testing.assert_array_equal(lengths, np.where(scores == 1, 9, 1))
    assert abs(scores.mean() - 0.5) < 0.1  # four standard deviations
    if "steps" in length:
        assert lengths[:-1].sum() < 2_000 <= lengths.sum()


def test_every_seed_plays_exactly_so_many_episodes():
    rows = evaluate(LEARNER, choosing(0, 0, 0), "gym/Coin-v0", seeds=(4, 7, 5), episodes=11, step=30)
    assert [row[:3] for row in rows] == [(30, seed, n) for seed in (4, 7, 5) for n in range(11)]
    assert len({row.length for row in rows}) == 2


def test_fused_seeds_each_play_by_their_own_parameters():
    rows = evaluate(LEARNER, choosing(2, 0, 1), "gym/Pay-v0", seeds=(0, 1, 2), episodes=3, epsilon=0.0)
    assert mean_scores(rows) == {0: 8.0, 1: 0.0, 2: 4.0}
    assert {row.length for row in rows} == {4}


def test_the_same_step_gives_the_same_rows_whatever_was_evaluated_before():
    def rows(step):
        return evaluate(
            LEARNER, choosing(0, 0), "gym/Coin-v0", seeds=(3, 4), episodes=20, step=step, epsilon=0.5
        )

    first = rows(step=10)
    other = rows(step=20)
    assert rows(step=10) == first
    assert [row[1:] for row in other] != [row[1:] for row in first]


def test_epsilon_is_the_share_of_random_actions():
    def mean(epsilon):
        rows = evaluate(LEARNER, choosing(2), "gym/Pay-v0", seeds=(0,), episodes=300, epsilon=epsilon)
        return mean_scores(rows)[0] / 4

    assert mean(0.0) == 2
    assert abs(mean(1.0) - 1) < 0.1
    assert abs(mean(0.5) - 1.5) < 0.1


def test_an_evaluation_that_is_told_to_stop_counts_nothing():
    answers = iter([False, False, True])
    rows = evaluate(LEARNER, choosing(0), "gym/Pay-v0", seeds=(0,), episodes=2, stop=lambda: next(answers))
    assert rows == []


@pytest.mark.parametrize(("name", "length"), [("gym/Pay-v0", 4), ("gym/Pendulum-v1", 200)])
def test_the_random_agent_which_has_no_parameters_is_evaluated_like_any_other(name, length):
    learner = Learner(agents.Random(), envs.make(name).spec)
    params = learner.init((0, 1)).params
    rows = evaluate(learner, params, name, seeds=(0, 1), episodes=3)
    assert [(row.seed, row.length) for row in rows] == [(0, length)] * 3 + [(1, length)] * 3
    assert len({row.score for row in rows}) > 1


def test_mean_scores_are_per_seed_in_the_order_given():
    rows = [EpisodeScore(0, 5, 0, 1.0, 1), EpisodeScore(0, 5, 1, 2.0, 1), EpisodeScore(0, 2, 0, 7.0, 1)]
    assert list(mean_scores(rows).items()) == [(5, 1.5), (2, 7.0)]


@pytest.mark.parametrize("name", ["gym/CartPole-v1", "minatar/breakout"])
def test_an_environment_of_other_shapes_is_refused(name):
    with pytest.raises(UsageError, match=rf"{name} has frames of .*; the data has frames of \(1,\) and 3"):
        check_playable(LEARNER.spec, name)
    check_playable(LEARNER.spec, "gym/Pay-v0")


def box(size: int, bound: float) -> Spec:
    return Spec((3,), "float32", action_low=(-bound,) * size, action_high=(bound,) * size)


def test_an_environment_of_other_action_vectors_is_refused():
    check_playable(box(1, 2.0), "gym/Pendulum-v1")
    check_playable(box(1, 1.5), "gym/Pendulum-v1")  # a log whose actions do not reach as far
    for spec, said in [
        (
            box(2, 2.0),
            "and action vectors of size 1; .* and action vectors of size 2",
        ),
        (Spec((3,), "float32", actions=3), "and action vectors of size 1; .* and 3 actions"),
        (
            dataclasses.replace(box(1, 2.0), frame_shape=(4,)),
            r"has frames of \(3,\) .* the data has frames of \(4,\)",
        ),
        (box(1, 2.5), r"has actions from \(-2.0,\) to \(2.0,\); the data has \(-2.5,\)"),
    ]:
        with pytest.raises(UsageError, match=said) as refused:
            check_playable(spec, "gym/Pendulum-v1")
        assert "\n" not in str(refused.value)


def test_every_seed_plays_its_own_number_of_steps():
    rows = evaluate(LEARNER, choosing(2, 1), "gym/Pay-v0", seeds=(3, 1), episodes=0, steps=41, epsilon=0.0)
    assert [row.seed for row in rows] == [3] * 11 + [1] * 11
    assert mean_scores(rows) == {3: 8.0, 1: 4.0}


def test_another_game_of_the_same_shapes_is_refused():
    check_playable(LEARNER.spec, "gym/Pay-v0", trained_on="gym/Pay-v0")
    check_playable(LEARNER.spec, "gym/Pay-v0", trained_on="")
    with pytest.raises(UsageError, match="the data is from gym/Coin-v0, not from gym/Pay-v0"):
        check_playable(LEARNER.spec, "gym/Pay-v0", trained_on="gym/Coin-v0")


def test_the_number_by_which_a_name_is_played_is_said(caplog):
    """A log of CartPole with the names west and east plays east as 0, which is to the left."""
    spec = dataclasses.replace(LEARNER.spec, action_names=("east", "stay", "west"))
    check_playable(spec, "gym/Pay-v0")
    (said,) = caplog.messages
    assert "gym/Pay-v0 takes numbers: 0 for east, 1 for stay, 2 for west; if it means others by them" in said


def test_the_same_game_with_other_options_is_played_and_said(caplog):
    """Nothing told that a log of one length was evaluated in another."""
    spec = envs.make("minatar_jax/breakout").spec
    check_playable(spec, "minatar_jax/breakout", trained_on="minatar_jax/breakout")
    assert caplog.messages == []
    check_playable(spec, "minatar_jax/breakout", trained_on="minatar_jax/breakout?max_steps=5")
    (said,) = caplog.messages
    assert said == (
        "the data is from minatar_jax/breakout?max_steps=5; it is evaluated in minatar_jax/breakout, with "
        "other options"
    )


lengths = st.lists(st.integers(1, 12), min_size=1, max_size=60)


def one_after_the_other(lengths: list[int], steps: int) -> list[int]:
    """The numbers of the episodes that a single player finishes before it has done so many steps."""
    played, done = [], 0
    while done < steps:
        done += lengths[len(played) % len(lengths)]
        played.append(len(played))
    return played


def played_out(series: list[Series], lanes: int, lengths: list[list[int]]) -> None:
    """Lanes side by side; episode n of seed s takes lengths[s][n] steps and scores n."""
    who = Lanes(series, lanes)
    left = [_length(lengths, lane // lanes, who._number[lane]) for lane in range(lanes * len(series))]
    while any(each.counted() is None for each in series):
        left = [n - 1 for n in left]
        ended = np.array([n == 0 for n in left])
        reward = np.where(ended, [float(n or 0) for n in who._number], 0.0)
        who.add(reward, ended)
        left = [
            _length(lengths, lane // lanes, who._number[lane]) if over else n
            for lane, (n, over) in enumerate(zip(left, ended, strict=True))
        ]


def _length(lengths: list[list[int]], seed: int, number: int | None) -> int:
    return 10**6 if number is None else lengths[seed][number % len(lengths[seed])]


@given(lengths, lengths, st.integers(1, 200), st.integers(1, 9))
def test_the_episodes_that_count_are_those_of_one_player(first, second, steps, lanes):
    series = [Series(0, steps), Series(0, steps)]
    played_out(series, lanes, [first, second])
    for each, of_seed in zip(series, (first, second), strict=True):
        expected = one_after_the_other(of_seed, steps)
        assert each.counted() == [(float(n), of_seed[n % len(of_seed)]) for n in expected]


@given(lengths, st.integers(1, 20), st.integers(1, 9))
def test_so_many_episodes_are_the_first_so_many_to_begin(of_seed, episodes, lanes):
    series = Series(episodes, None)
    played_out([series], lanes, [of_seed])
    assert series.counted() == [(float(n), of_seed[n % len(of_seed)]) for n in range(episodes)]


def test_no_lane_begins_what_cannot_count():
    series = Series(0, steps=10)
    assert [series.begin(played) for played in (0, 0, 9, 10, 11)] == [0, 1, 2, None, None]
