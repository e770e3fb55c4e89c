"""Scores by full episodes: every episode that is begun is counted, so that long ones weigh no less."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from optimist import envs
from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.training.acting import act
from optimist.training.learner import Learner


class EpisodeScore(NamedTuple):
    """One evaluation episode, as a row of `episodes.csv`."""

    step: int
    seed: int
    episode: int
    score: float
    length: int


def evaluate(
    learner: Learner,
    params: dict,
    environment: str,
    *,
    seeds: tuple[int, ...],
    episodes: int,
    epsilon: float = 0.001,
    step: int = 0,
    options: dict | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[EpisodeScore]:
    """Play exactly `episodes` episodes with every seed's parameters, all side by side; none if told to stop.

    Each lane plays one episode from beginning to end. Counting the first n to finish among endlessly playing
    lanes would favour the short ones.
    """
    shape = (len(seeds), episodes)
    play = envs.make(
        environment, lanes=len(seeds) * episodes, seed=_stream(seeds[0], step), **(options or {})
    )
    stack = envs.FrameStack(learner.spec, play.lanes)
    key = jax.random.PRNGKey(_stream(seeds[0], step))
    observation, turn = stack.reset(play.reset()), 0
    score, length = np.zeros(play.lanes), np.zeros(play.lanes, int)
    playing = np.ones(play.lanes, bool)
    while playing.any() and not stop():
        lanes = observation.reshape(*shape, *observation.shape[1:])
        actions = act(learner, params, lanes, epsilon, key, turn)
        taken = play.step(np.asarray(actions).reshape(play.lanes, *actions.shape[2:]))
        score += np.where(playing, taken.reward, 0)
        length += playing
        ended = taken.terminal | taken.truncated
        playing &= ~ended
        observation, turn = stack.push(taken.observation, ended), turn + 1
    play.close()
    if playing.any():
        return []
    each = [(seed, episode) for seed in seeds for episode in range(episodes)]
    return [
        EpisodeScore(step, *names, float(s), int(n)) for names, s, n in zip(each, score, length, strict=True)
    ]


def check_playable(spec: Spec, environment: str) -> None:
    """Refuse an environment that shows or takes something else than this agent knows."""
    play = envs.make(environment)
    play.close()
    shows, takes = play.spec.frame_shape, play.spec.actions
    if (shows, takes) != (spec.frame_shape, spec.actions):
        raise UsageError(
            f"{environment} shows {shows} and takes {takes} actions; this agent learns on "
            f"{spec.frame_shape} with {spec.actions}"
        )


def _stream(seed: int, step: int) -> int:
    """The random stream of one evaluation: its own, whatever was evaluated before it."""
    return int(np.random.SeedSequence([0xE7A1, seed, step]).generate_state(1)[0] >> 1)


def mean_scores(rows: list[EpisodeScore]) -> dict[int, float]:
    """The average return of each seed."""
    seeds = dict.fromkeys(row.seed for row in rows)
    return {seed: float(np.mean([row.score for row in rows if row.seed == seed])) for seed in seeds}
