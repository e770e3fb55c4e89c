"""The JAX games equal the authors' games step by step, with the same random draws."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist.envs import _games
from optimist.envs._games import Move
from optimist.envs.minatar import GAMES, authors_game

STEPS = 12_000
RESTARTED = ("breakout", "freeway")
SEEN = {
    "asterix": {"ramp_index": 9, "entities": 8},
    "breakout": {"walls cleared": 1},
    "freeway": {},
    "seaquest": {
        "ramp_index": 19,
        "diver_count": 6,
        "f_bullets": 2,
        "divers": 2,
        "enemies": 23,
        "divers owed": 34,
    },
    "space_invaders": {"ramp_index": 6},
}  # the largest value of each that the test reaches


class Luck:
    """A replacement of the package's random stream by given numbers from [0, 1)."""

    def __init__(self):
        self.numbers: list[np.float32] = []

    def rand(self, count=None):
        return self.numbers.pop(0) if count is None else np.array([self.rand() for _ in range(count)])

    def randint(self, low, high=None, size=None):
        low, high = (0, low) if high is None else (low, high)
        return low + np.floor(self.rand(size) * np.float32(high - low)).astype(int)


def theirs(game):
    """The package's game with a random stream that the test controls."""
    env = authors_game(game)(ramping=True)
    env.random = Luck()
    return env


def moves_of(game, env, random):
    """Moves that reach late states: after the ball in Breakout, mostly up in Freeway, else random ones."""
    move = Move.NOTHING
    while True:
        if game == "breakout":
            aim = env.ball_x + random.choice([0, 0, 1 if env.ball_dir in (1, 2) else -1])
            after_it = Move.LEFT if aim < env.pos else Move.RIGHT if aim > env.pos else Move.NOTHING
            move = after_it if random.random() < 0.97 else Move.NOTHING
        elif random.random() < 0.4:
            favourites = [Move.UP] * 6 if game == "freeway" else []
            move = random.choice([*_games.named(game).ACTIONS, *favourites])
        yield move


def luck_they_ask_for(game, env, luck):
    """In Seaquest each number always decides the same event; the package draws numbers only as needed."""
    no_enemy = game == "seaquest" and env.e_spawn_timer != 0
    return list(luck[3:] if no_enemy else luck)


def played(game, luck, luck_of_starts):
    """Moves, rewards, ends and pictures of the package, and the largest values of what is counted."""
    env, random, most = theirs(game), np.random.default_rng(1), Counter()
    env.random.numbers = list(luck_of_starts[-1])
    env.reset()
    rows = []
    for now, start, move in zip(luck, luck_of_starts, moves_of(game, env, random), strict=False):
        env.random.numbers = luck_they_ask_for(game, env, now)
        reward, over = env.act(move)
        rows.append((move, reward, over, env.state()))
        env.terminal = False
        if over and game in RESTARTED:
            env.random.numbers = list(start)
            env.reset()
        most |= counted(game, env)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    most["walls cleared"] = int(game == "breakout" and not columns[-1][..., 3].any(axis=(1, 2)).all())
    return columns, most


def counted(game, env) -> Counter:
    """The positive numbers of a state, and the lengths of its lists."""
    numbers = Counter({name: sizes(value) for name, value in vars(env).items()})
    if game == "seaquest":
        numbers |= Counter({"enemies": len(env.e_fish) + len(env.e_subs), "divers owed": -env.diver_count})
    return +numbers


def sizes(value) -> int:
    if isinstance(value, list):
        return sum(thing is not None for thing in value)
    return value if isinstance(value, int) else 0


def replayed(game, moves, luck, luck_of_starts):
    """The same from our JAX program."""
    rules = _games.named(game)

    def step(state, now):
        state, reward, over = rules.step(state, now[0], now[1])
        end = over & (game in RESTARTED)
        following = jax.tree.map(lambda new, old: jnp.where(end, new, old), rules.begin(now[2]), state)
        return following, (reward, over, rules.picture(state))

    return jax.jit(
        lambda: jax.lax.scan(step, rules.begin(luck_of_starts[-1]), (moves, luck, luck_of_starts))[1]
    )()


@pytest.mark.parametrize("game", GAMES)
def test_every_step_is_the_packages(game):
    """Play continues after the end of a game where possible, to reach late and crowded states too."""
    rules, random = _games.named(game), np.random.default_rng(2)
    luck = random.random((STEPS, rules.LUCK_OF_A_STEP), np.float32)
    luck_of_starts = random.random((STEPS, rules.LUCK_OF_A_START), np.float32)
    (moves, *expected), most = played(game, luck, luck_of_starts)
    for name, ours, package in zip(
        ("reward", "over", "picture"), replayed(game, moves, luck, luck_of_starts), expected, strict=True
    ):
        np.testing.assert_array_equal(ours, package, err_msg=name)
    assert expected[0].sum() > 20 and expected[1].sum() > 3
    assert {name: most[name] for name in SEEN[game]} == SEEN[game]
