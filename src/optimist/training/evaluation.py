"""Evaluation by full episodes; the choice of episodes does not depend on their lengths. If the game is a JAX
program, so is the evaluation: no step waits for the host."""

import logging
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist import envs
from optimist.data.transition import Spec
from optimist.envs._environment import named_failures
from optimist.errors import UsageError, in_one_line, some_of
from optimist.training.learner import SIDE_BY_SIDE, Learner
from optimist.training.play.acting import Player, act, blank, look_and_choose
from optimist.training.settings import check_length
from optimist.training.storage.rows import EpisodeScore

Choice = Callable[[np.ndarray, np.ndarray, int], np.ndarray]  # (frames, episode began?, turn) -> actions
SHOWN = 20  # actions in a line
LANES = 16  # per seed, if an evaluation is measured in steps, as in the paper
TURNS = 1_000  # steps of one program; a signal takes effect between two programs
log = logging.getLogger("optimist")


class Series:
    """The episodes of one seed, numbered in the order of their beginnings: `episodes` of them, or as many as
    make `steps` steps.

    The paper plays one episode after another until 125,000 steps are done, and plays the last one to its end.
    Parallel lanes would favour short episodes if the first to finish counted. So each episode is numbered
    when it begins, and the same episodes count as in one lane: numbers 0, 1, ... up to the first with which
    the sum of their lengths reaches `steps`. Later episodes are discarded.
    """

    def __init__(self, episodes: int, steps: int | None):
        self._episodes, self._steps = episodes, steps
        self._over: dict[int, tuple[float, int]] = {}
        self._begun = 0

    def begin(self, played: int) -> int | None:
        """The number of the next episode, or None if no more are needed; `played` is the steps so far."""
        if self._complete(self._begun, played):
            return None
        self._begun += 1
        return self._begun - 1

    def end(self, number: int, score: float, length: int) -> None:
        self._over[number] = (score, length)

    def counted(self) -> list[tuple[float, int]] | None:
        """Score and length of the episodes that count, or None while one of them is unfinished."""
        found: list[tuple[float, int]] = []
        steps = 0
        while not self._complete(len(found), steps):
            if len(found) not in self._over:
                return None
            found.append(self._over[len(found)])
            steps += found[-1][1]
        return found

    def _complete(self, episodes: int, steps: int) -> bool:
        return episodes >= self._episodes if self._steps is None else steps >= self._steps


class Lanes:
    """The state of every lane: its seed, the number of its episode, and its score so far."""

    def __init__(self, series: list[Series], lanes: int):
        self.series, self._lanes = series, lanes
        count = len(series) * lanes
        self._score, self._length = np.zeros(count), np.zeros(count, int)
        self._played = np.zeros(len(series), int)
        self._number: list[int | None] = [None] * count
        self._busy = np.zeros(count, bool)
        for lane in range(count):
            self._begin(lane)

    def _begin(self, lane: int) -> None:
        seed = lane // self._lanes
        playing = self._length[seed * self._lanes : (seed + 1) * self._lanes].sum()
        self._number[lane] = self.series[seed].begin(int(self._played[seed] + playing))
        self._busy[lane] = self._number[lane] is not None

    def add(self, reward: np.ndarray, ended: np.ndarray) -> None:
        self._score += np.where(self._busy, reward, 0)
        self._length += self._busy
        for lane in np.flatnonzero(ended & self._busy).tolist():
            number, seed = self._number[lane], lane // self._lanes
            assert number is not None  # the lane is busy
            self.series[seed].end(number, float(self._score[lane]), int(self._length[lane]))
            self._played[seed] += self._length[lane]
            self._score[lane] = self._length[lane] = 0
            self._begin(lane)


def evaluate(
    learner: Learner,
    params: dict,
    environment: str,
    *,
    seeds: tuple[int, ...],
    episodes: int,
    steps: int | None = None,
    epsilon: float = 0.001,
    step: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> list[EpisodeScore]:
    """Play with the parameters of all seeds in parallel: `episodes` episodes each, or, if `steps` is given,
    full episodes until that many steps are done. The result is empty if `stop()` becomes true."""
    check_length(steps)
    lanes = episodes if steps is None else LANES
    play = envs.make(environment, lanes=len(seeds) * lanes, seed=_stream(seeds[0], step))
    key = jax.random.PRNGKey(_stream(seeds[0], step))
    player = Player(learner, play.lanes, len(seeds))

    def choose(frames: np.ndarray, began: np.ndarray, turn: int) -> np.ndarray:
        allowed = getattr(play, "allowed", None)
        actions = np.asarray(player(params, frames, began, epsilon, key, turn, allowed=allowed))
        return actions.reshape(play.lanes, *actions.shape[2:])

    with closing(play):
        if steps is None and hasattr(play, "rules"):  # one lane per episode, and the game is a JAX program
            played = play_out_on_device(play, learner, params, len(seeds), epsilon, key, stop)
        else:
            played = play_out(play, choose, [Series(episodes, steps) for _ in seeds], stop)
    return [
        EpisodeScore(step, seed, number, *each)
        for seed, episodes_of_seed in zip(seeds, played, strict=True)
        for number, each in enumerate(episodes_of_seed)
    ]


def play_out(
    play: envs.Environment, choose: Choice, series: list[Series], stop: Callable[[], bool] = lambda: False
) -> list[list[tuple[float, int]]]:
    """Play until every series is complete: score and length of its episodes, or none if stopped."""
    lanes = Lanes(series, play.lanes // len(series))
    with named_failures(play.name):
        frames, began, turn = play.reset(), np.ones(play.lanes, bool), 0
    while not stop():
        actions = choose(frames, began, turn)
        with named_failures(play.name):
            taken = play.step(actions)
        began = taken.terminal | taken.truncated
        lanes.add(taken.reward, began)
        frames, turn = taken.observation, turn + 1
        counted = [each.counted() for each in series] if began.any() else [None]
        if None not in counted:
            return counted  # type: ignore[return-value]
    return [[] for _ in series]


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
    lanes = play.lanes
    in_play = EpisodesInPlay(
        table=play.begin(),
        seen=blank(learner.spec, lanes),
        began=jnp.ones(lanes, bool),
        score=jnp.zeros(lanes),
        length=jnp.zeros(lanes, jnp.int32),
        over=jnp.zeros(lanes, bool),
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


def check_playable(
    spec: Spec, environment: str, trained_on: str = "", *, masked: bool = False
) -> dict[str, str]:
    """Raise UsageError if the environment is another game, or if its observations or actions are not those of
    the spec. Return its versions, to be recorded with the scores. `masked` says that the log has masks."""
    with closing(envs.make(environment)) as play:
        versions, gives_masks = play.versions(), envs.gives_masks(play)
    shows, takes = play.spec.frame_shape, play.spec.actions or play.spec.action_shape
    if (shows, takes) != (spec.frame_shape, spec.actions or spec.action_shape):
        raise UsageError(
            f"{environment} has frames of {shows} and {_choice(play.spec)}; the data has frames of "
            f"{spec.frame_shape} and {_choice(spec)}: name another environment"
        )
    if not spec.discrete and play.spec.outside(np.array([spec.action_low, spec.action_high])).any():
        raise UsageError(
            f"{environment} has actions from {play.spec.action_low} to {play.spec.action_high}; the data has "
            f"{spec.action_low} to {spec.action_high}: log with the environment's bounds"
        )
    if trained_on and envs.base_name(environment) != envs.base_name(str(trained_on)):
        raise UsageError(f"the data is from {trained_on}, not from {environment}: evaluate in {trained_on}")
    if line := other_options(environment, trained_on):
        log.warning("%s", line)
    if spec.action_names not in ((), play.spec.action_names):
        # Their order, often the alphabetical one, need not be the environment's.
        numbered = [f"{number} for {in_one_line(name, 20)}" for number, name in enumerate(spec.action_names)]
        log.warning(
            "the actions of the log have names, and %s takes numbers: %s; if it means others by them, log "
            "its numbers in place of the names",
            environment,
            some_of(numbered, SHOWN),
        )
    if masked and not gives_masks:
        line = "the log has masks of allowed actions, and %s gives none: every action can be chosen there"
    else:
        line = "%s gives masks of allowed actions, and the log has none: policies obey them there, untrained"
    if masked != gives_masks:
        log.warning(line, environment)
    return versions


def other_options(environment: str, trained_on: str) -> str:
    """A warning if the data was played in the same game with other options, otherwise ""."""
    same_game = trained_on and envs.base_name(environment) == envs.base_name(trained_on)
    if not same_game or environment == trained_on:  # another game is refused
        return ""
    return f"the data is from {trained_on}; it is evaluated in {environment}, with other options"


def _choice(spec: Spec) -> str:
    return f"{spec.actions} actions" if spec.discrete else f"action vectors of size {len(spec.action_low)}"


def _stream(seed: int, step: int) -> int:
    """The seed of one evaluation's randomness; it does not depend on earlier evaluations."""
    return int(np.random.SeedSequence([0xE7A1, seed, step]).generate_state(1)[0] >> 1)


def mean_scores(rows: list[EpisodeScore]) -> dict[int, float]:
    """The mean return of each seed."""
    seeds = dict.fromkeys(row.seed for row in rows)
    return {seed: float(np.mean([row.score for row in rows if row.seed == seed])) for seed in seeds}
