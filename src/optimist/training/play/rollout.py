"""Evaluation as one program, for games that are JAX programs: no step waits for the host."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.training.learner import SIDE_BY_SIDE, Learner
from optimist.training.play.acting import act, blank, look_and_choose

TURNS = 1_000  # steps of one program; a signal takes effect between two programs


class EpisodesInPlay(NamedTuple):
    """The state of one unfinished or finished episode in every lane."""

    table: Any
    seen: Any
    began: Any
    score: Any
    length: Any
    over: Any
    turn: Any


def play_out_on_device(
    play: Any,
    learner: Learner,
    params: dict,
    seeds: int,
    epsilon: float,
    key: Any,
    stop: Callable[[], bool] = lambda: False,
) -> list[list[tuple[float, int]]]:
    """Play one episode in every lane of an environment that has `rules`; each seed has the same number of
    lanes. The result is score and length of each seed's episodes, or none if stopped."""
    lanes, nothing = play.lanes, jnp.zeros(play.lanes)
    in_play = EpisodesInPlay(
        table=play.begin(),
        seen=blank(learner.spec, lanes),
        began=jnp.ones(lanes, bool),
        score=nothing,
        length=nothing.astype(jnp.int32),
        over=nothing.astype(bool),
        turn=jnp.int32(0),
    )
    while not in_play.over.all():
        if stop():
            return [[] for _ in range(seeds)]
        in_play = _played_on(play.rules, learner, seeds, params, in_play, epsilon, key)
    played = (in_play.score, in_play.length)
    scores, lengths = (np.asarray(each).reshape(seeds, -1).tolist() for each in played)
    return [list(zip(*both, strict=True)) for both in zip(scores, lengths, strict=True)]


@partial(jax.jit, static_argnames=("rules", "learner", "seeds"), compiler_options=SIDE_BY_SIDE)
def _played_on(
    rules: Any, learner: Learner, seeds: int, params: dict, in_play: EpisodesInPlay, epsilon, key
) -> EpisodesInPlay:
    last_turn = in_play.turn + TURNS

    def turn(now: EpisodesInPlay) -> EpisodesInPlay:
        look, allowed = (now.seen, now.table.frames, now.began), getattr(now.table, "allowed", None)
        how = (epsilon, key, now.turn)
        chosen, seen = look_and_choose(learner, seeds, act, params, *look, *how, allowed=allowed)
        table, taken = rules.step(now.table, chosen.reshape(-1))
        ended = taken.terminal | taken.truncated
        return EpisodesInPlay(
            table=table,
            seen=seen,
            began=ended,
            score=now.score + jnp.where(now.over, 0, taken.reward),
            length=now.length + ~now.over,
            over=now.over | ended,
            turn=now.turn + 1,
        )

    return jax.lax.while_loop(lambda now: ~now.over.all() & (now.turn < last_turn), turn, in_play)
