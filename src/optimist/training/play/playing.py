"""The play of online agents, row by row: choose the actions, step the environments, record, learn.

If the game is a JAX program, many rows of playing and learning are one program, without the host."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.recorder import DepartedError, Recorder
from optimist.envs import Step
from optimist.envs._environment import named_failures
from optimist.errors import OptimistError
from optimist.training.learner import SIDE_BY_SIDE, Learner, advanced
from optimist.training.play.acting import Player, act_online, look_and_choose
from optimist.training.play.replay import Memory, Recall, Replay, grown, remembered

ROWS = 64  # rows of one program, if the game is a JAX program
ACTING = 0xAC7  # the number of this random stream of a seed; the learner uses 0 and 1


def acting_key(seed: int) -> Any:
    """The key of actions; the initial weights and the mixtures are drawn from the learner's key."""
    return jax.random.fold_in(jax.random.PRNGKey(seed), ACTING)


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


class Moment(NamedTuple):
    """One step of every lane."""

    frame: np.ndarray
    shown: Any  # the same frame on the device: transferred once, for acting and for learning
    action: np.ndarray
    taken: Step
    allowed: Any = None  # the mask of the actions that could be chosen, (lanes, A)


class Playing:
    """Plays all lanes of all seeds, row by row. If the game is a JAX program, many rows are one program: the
    results are the same, only faster."""

    def __init__(
        self,
        learner: Learner,
        play: Any,
        replay: Replay,
        recorder: Recorder,
        collection: Any,
        seeds: tuple[int, ...],
        step: int,
    ):
        self._learner, self._play, self._replay, self._recorder = learner, play, replay, recorder
        self._collection, self._key = collection, acting_key(seeds[0])
        self._player = Player(learner, play.lanes, len(seeds), act_online)
        # The number of each lane's episode; it starts at `step`, so that a resumed run draws new mixtures.
        self._episodes = np.full((len(seeds), collection.lanes), step, np.int32)
        with named_failures(play.name):
            self._frame, self._began = play.reset(), np.ones(play.lanes, bool)
        self._allowed = getattr(play, "allowed", None)
        self._moment: Moment | None = None  # the last step, until it is in the replay and the recording
        self._other_thread = ThreadPoolExecutor(1, "learner")
        self._recorded: Future = self._other_thread.submit(lambda: None)

    def saved(self) -> dict[str, np.ndarray]:
        """Everything that the next row depends on besides parameters and replay; call `settle` first."""
        ours = {name: np.array(value) for name, value in self._ours().items()}
        return ours | {f"play/{name}": array for name, array in self._play.saved().items()}

    @property
    def resumable(self) -> bool:
        return getattr(self._play, "resumable", False)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Continue from what `saved` returned; DepartedError if that is impossible."""
        inside = {name[5:]: array for name, array in arrays.items() if name.startswith("play/")}
        try:
            for name, value in self._ours().items():
                if (arrays[name].shape, arrays[name].dtype) != (value.shape, value.dtype):
                    raise ValueError(f"the saved {name} has another shape or type")
            self._play.restore(inside)
        except (KeyError, TypeError, ValueError, AttributeError, OptimistError) as problem:
            raise DepartedError(f"{self._play.name} cannot be restored: {problem!r}") from problem
        self._frame, self._began, self._episodes = (arrays[name] for name in ("frame", "began", "episodes"))
        self._player.seen, self._allowed = jax.numpy.asarray(arrays["seen"]), arrays.get("allowed")

    def _ours(self) -> dict[str, Any]:
        return {
            "frame": self._frame,
            "began": self._began,
            "episodes": self._episodes,
            "seen": self._player.seen,
            **({} if self._allowed is None else {"allowed": self._allowed}),
        }

    def __enter__(self) -> "Playing":
        return self

    def __exit__(self, *problem) -> None:
        self._other_thread.shutdown()

    def go(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Play one or more rows from this agent step: rewards, and which episodes ended, (rows, lanes)."""
        if hasattr(self._play, "rules") and self._collection.rows_to_look(step) >= ROWS:
            updates = self._replay.due_at_each(self._steps_ahead(step))
            if updates is not None:  # otherwise the rows cannot be one program
                return self._many(step, updates)
        return self._one(step)

    def settle(self, learn_at: int | None = None) -> None:
        """Put the last step into the replay and the recording; learn what is due at step `learn_at`."""
        self._recorded.result()
        self._digest(self._moment, learn_at)
        self._moment = None

    def _one(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        epsilon = self._collection.exploration(step)
        shown, frame, allowed = jax.device_put(self._frame), self._frame, self._allowed
        how = (epsilon, self._key, step, self._episodes)
        chosen = self._player(self._replay.state.params, shown, self._began, *how, allowed=allowed)
        # While the environments play this step, the other thread processes the step before it.
        behind = self._other_thread.submit(self._digest, self._moment, step)
        action = np.asarray(chosen).reshape(self._play.lanes, *chosen.shape[2:])
        with named_failures(self._play.name):
            taken = self._play.step(action)
        behind.result()
        self._moment = Moment(frame, shown, action, taken, allowed)
        self._allowed = getattr(self._play, "allowed", None)
        self._frame, self._began = taken.observation, taken.terminal | taken.truncated
        self._episodes = self._episodes + self._began.reshape(self._episodes.shape)
        return taken.reward[None], self._began[None]

    def _digest(self, moment: Moment | None, due: int | None) -> None:
        """Add a step to replay and recording, and learn what is due at step `due`. Learning starts before the
        recording, because an accelerator computes while the host records."""
        if moment:
            self._replay.add(moment.shown, moment.action, *moment.taken[1:4], moment.allowed)
        if due is not None:
            self._replay.learn(due)
        if moment:
            self._recorder.add(moment.frame, moment.action, *moment.taken[1:], allowed=moment.allowed)
        if due is not None:
            self._replay.prepare(due + self._collection.lanes)

    def _steps_ahead(self, step: int) -> np.ndarray:
        return (step + self._collection.lanes * np.arange(ROWS)).astype(np.int32)

    def _many(self, step: int, updates: int) -> tuple[np.ndarray, np.ndarray]:
        if self._moment:
            self.settle()
        steps = self._steps_ahead(step)
        epsilon = np.array([self._collection.exploration(each) for each in steps.tolist()], np.float32)
        rows = PlannedRow(np.arange(ROWS), steps, epsilon, *self._replay.draw_ahead(ROWS, updates))
        state, window, age = self._replay.lend()
        ours = (self._play.table, self._player.seen, self._began, self._episodes)
        play_state = PlayState(*ours, state, window, age, cut=np.zeros((ROWS, self._play.lanes), bool))
        play_state, on_device, losses = play_rows(
            self._play.rules, self._learner, self._replay.recall, play_state, self._key, rows
        )
        played = PlayedRows(*jax.device_get(tuple(on_device)))
        self._recorded.result()
        self._recorded = self._other_thread.submit(self._record, played)  # while the next rows are played
        self._play.table, self._player.seen = play_state.table, play_state.seen
        allowed = getattr(play_state.table, "allowed", None)
        self._frame, self._began, self._episodes, self._allowed = jax.device_get(
            (play_state.table.frames, play_state.began, play_state.episodes, allowed)
        )
        self._replay.give_back(play_state.state, play_state.window, play_state.age, played.truncated, losses)
        return played.reward, played.terminal | played.truncated

    def _record(self, played: PlayedRows) -> None:
        for number in range(len(played.reward)):
            row: list[Any] = [None if column is None else column[number] for column in played]
            self._recorder.add(*row)
