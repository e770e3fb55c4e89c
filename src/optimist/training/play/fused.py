"""Playing and learning as one program, for games that are JAX programs: many rows without the host."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.training.learner import SIDE_BY_SIDE, Learner, advanced
from optimist.training.play.acting import act_online, look_and_choose
from optimist.training.play.memory import Memory, Recall, grown, remembered


class PlayState(NamedTuple):
    """Everything that changes from row to row; a row is one step of every lane."""

    table: Any
    seen: Any
    began: Any
    episodes: Any
    state: Any
    window: Any
    age: Any
    cut: Any  # (rows, lanes): which steps of these rows were truncated


class PlannedRow(NamedTuple):
    """The part of a row that is known before it is played."""

    number: Any
    step: Any
    epsilon: Any
    slot: Any
    items: Any
    spares: Any  # replacements for items that turn out to be truncated


class PlayedRows(NamedTuple):
    """The played rows, for the recording."""

    frame: Any
    action: Any
    reward: Any
    terminal: Any
    truncated: Any
    next_observation: Any
    next_allowed: Any = None
    allowed: Any = None


@partial(
    jax.jit,
    static_argnames=("rules", "learner", "recall"),
    donate_argnames="play_state",
    compiler_options=SIDE_BY_SIDE,
)
def play_rows(
    rules: Any, learner: Learner, recall: Recall, play_state: PlayState, key, rows: PlannedRow
) -> tuple[PlayState, PlayedRows, dict]:
    """Play row by row in the same order as the host: act, take the due gradient steps on earlier rows, step
    the environments, add the row to the window. The losses are (rows, updates, seeds)."""
    seeds, first_slot = play_state.episodes.shape[0], rows.slot[0]

    def play(now: PlayState, row: PlannedRow):
        frame, allowed = now.table.frames, getattr(now.table, "allowed", None)
        look, how = (now.seen, frame, now.began), (row.epsilon, key, row.step, now.episodes)
        chosen, seen = look_and_choose(
            learner, seeds, act_online, now.state.params, *look, *how, allowed=allowed
        )
        state, losses = now.state, dict[str, Any]()
        if row.items.shape[0]:
            items = _without_cut(now.cut, row, first_slot, now.window.reward.shape[0])
            state, losses = advanced(learner, state, recall, now.window, items)
        action = chosen.reshape(-1)
        table, taken = rules.step(now.table, action)
        ended = taken.terminal | taken.truncated
        seen_row = Memory(frame, action, taken.reward, taken.terminal, now.age, allowed)
        following = PlayState(
            table=table,
            seen=seen,
            began=ended,
            episodes=now.episodes + ended.reshape(now.episodes.shape),
            state=state,
            window=remembered(now.window, row.slot, seen_row),
            age=grown(now.age, ended, learner.spec.stack),
            cut=now.cut.at[row.number].set(taken.truncated),
        )
        return following, (PlayedRows(frame, action, *taken[1:])._replace(allowed=allowed), losses)

    play_state, (played, losses) = jax.lax.scan(play, play_state, rows)
    return play_state, played, losses


def _without_cut(cut, row: PlannedRow, first_slot, slots: int) -> Any:
    """The minibatches of a row. They were drawn before it was known which steps of these rows are truncated;
    such steps are replaced by spares."""
    slot, lane = row.items[..., 0, :], row.items[..., 1, :]
    number = (slot - first_slot) % slots
    refused = (number < len(cut)) & cut[jnp.minimum(number, len(cut) - 1), lane]
    return jnp.where(refused[..., None, :], row.spares, row.items)
