"""MinAtar as JAX programs: the same games as in the package, on the device and from the host."""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist import agents, envs
from optimist.envs import minatar_jax
from optimist.errors import UsageError
from optimist.training.evaluation import Series, evaluate, play_out
from optimist.training.learner import Learner

DIGESTS = {
    "asterix": "f33eee9e6fe1",
    "breakout": "12695e211dab",
    "freeway": "3ba267da6686",
    "seaquest": "2509572991c4",
    "space_invaders": "ad867636ac4e",
}  # of 150 steps in 8 lanes


def first_episodes(play: envs.Environment) -> np.ndarray:
    """Return and length of one episode of random play in every lane, (2, lanes)."""
    random = np.random.default_rng(0)

    def anything(frames, began, turn):
        return random.integers(0, play.spec.actions, play.lanes)

    series = [Series(1, None) for _ in range(play.lanes)]
    return np.array(play_out(play, anything, series))[:, 0].T


def played(name, *, lanes=3, seed=1, steps=120, **options):
    play = envs.make(name, lanes=lanes, seed=seed, **options)
    actions = np.random.default_rng(5).integers(0, play.spec.actions, (steps, lanes))
    return play.reset(), [play.step(row) for row in actions]


def test_random_play_is_as_long_and_as_good_as_in_the_package():
    """The games are the same by `test_games.py`; what is around them is by this."""
    ours, theirs = (envs.make(f"{family}/breakout", lanes=100) for family in ("minatar_jax", "minatar"))
    assert ours.spec == theirs.spec
    ours, theirs = first_episodes(ours), first_episodes(theirs)
    error = np.sqrt((ours.var(axis=1) + theirs.var(axis=1)) / 100)
    assert (abs(ours.mean(axis=1) - theirs.mean(axis=1)) <= 3 * error).all()


def test_a_new_episode_follows_and_the_last_frame_is_kept():
    first, steps = played("minatar_jax/breakout")
    ended = 0
    for before, step in zip([first, *(step.observation for step in steps)], steps, strict=False):
        over = step.terminal | step.truncated
        np.testing.assert_array_equal(step.observation[~over], step.next_observation[~over])
        assert (step.observation[over] != step.next_observation[over]).any(axis=(1, 2, 3)).all()
        assert before.dtype == bool and step.reward.dtype == np.float32
        ended += over.sum()
    assert ended > 10


def test_every_tenth_action_is_the_one_before():
    play, lanes = envs.make("minatar_jax/breakout", lanes=4_000), 4_000
    play.reset()
    left, nothing = np.full(lanes, 1), np.zeros(lanes, int)
    places = [play.step(action).observation[:, 9, :, 0].argmax(axis=-1) for action in (left, nothing)]
    went, went_again = places[0] == 3, places[1] < places[0]
    assert abs(went.mean() - 0.9) < 0.02 and abs(went_again[went].mean() - 0.1) < 0.02
    assert not went_again[~went].any()
    play.step(left)
    play.reset()
    after_a_reset = play.step(nothing).observation[:, 9, :, 0].argmax(axis=-1) == 3
    assert abs(after_a_reset.mean() - 0.09) < 0.02


@pytest.mark.slow
def test_another_edition_where_the_same_luck_leads_elsewhere():
    """A change of the games needs another EDITION, and the new digests here."""
    digests = {}
    for game in minatar_jax.games():
        first, steps = played(f"minatar_jax/{game}", lanes=8, steps=150)
        frames = np.stack([first, *(step.observation for step in steps)])
        digests[game] = hashlib.sha256(np.packbits(frames)).hexdigest()[:12]
    assert (minatar_jax.EDITION, digests) == ("1", DIGESTS)


@pytest.mark.parametrize("game", minatar_jax.games())
def test_a_step_has_no_loop_on_a_gpu(game):
    """Every iteration of a loop would be a launch that waits for the one before."""
    rules = minatar_jax.Rules(game, 3_000)
    table = jax.eval_shape(rules.begin, jnp.zeros((4, 2), jnp.uint32))
    program = jax.jit(rules.step).trace(table, jnp.zeros(4, jnp.int32)).lower(lowering_platforms=("cuda",))
    text = program.as_text()
    assert "stablehlo.reduce" in text
    for loop in ("while", "scatter", "sort", "dynamic_update_slice"):
        assert f"stablehlo.{loop}" not in text


class FromTheHost:
    """The same environment without the attribute `rules`."""

    def __init__(self, play):
        self._play = play

    def __getattr__(self, name):
        if name == "rules":
            raise AttributeError(name)
        return getattr(self._play, name)


def test_an_evaluation_on_the_device_is_the_one_from_the_host(monkeypatch):
    learner = Learner(agents.preset("dqn"), envs.make("minatar_jax/breakout").spec)
    params = learner.init((3, 4)).params

    def scores():
        return evaluate(
            learner, params, "minatar_jax/breakout", seeds=(3, 4), episodes=10, epsilon=0.9, step=7
        )

    on_device, make = scores(), envs.make
    monkeypatch.setattr(envs, "make", lambda *names, **how: FromTheHost(make(*names, **how)))
    assert scores() == on_device
    assert [row.seed for row in on_device] == [3] * 10 + [4] * 10
    assert len({row.length for row in on_device}) > 2


def test_an_evaluation_on_the_device_can_be_stopped():
    learner = Learner(agents.preset("dqn"), envs.make("minatar_jax/breakout").spec)
    params = learner.init((0,)).params
    assert evaluate(learner, params, "minatar_jax/breakout", seeds=(0,), episodes=2, stop=lambda: True) == []


def test_mistakes_are_told():
    with pytest.raises(UsageError, match='no environment "minatar_jax/brekout": did you mean "breakout"'):
        envs.make("minatar_jax/brekout")
    play = envs.make("minatar_jax/breakout")
    with pytest.raises(UsageError, match="call reset"):
        play.render()
    play.reset()
    assert play.render().shape == (160, 160, 3)
    assert set(play.versions()) == {"minatar_jax", "jax"}
