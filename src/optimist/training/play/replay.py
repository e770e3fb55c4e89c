"""The replay of online agents: the last steps of every lane, on the device, sampled uniformly, and the
transitions made of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.sampling import Sampler
from optimist.data.timeline import stacked
from optimist.data.transition import Spec, Transition
from optimist.data.views import View
from optimist.training.feeding import feed_of
from optimist.training.learner import Learner, TrainState, advance

ROWS_AT_ONCE = 256  # rows that a refill decodes together; a row is one step of every lane


class Memory(NamedTuple):
    """A ring of rows, (slots, lanes, ...); slot t+1 holds the successors of slot t."""

    frame: Any
    action: Any
    reward: Any
    terminal: Any
    age: Any  # number of earlier frames of the same episode, at most a stack's
    allowed: Any = None  # the actions that could be chosen, if the environment says so


def empty_memory(spec: Spec, slots: int, lanes: int, *, masked: bool = False) -> Memory:
    shape = (slots, lanes)
    return Memory(
        frame=jnp.zeros((*shape, *spec.frame_shape), spec.frame_dtype),
        action=jnp.zeros((*shape, *spec.action_shape), spec.action_dtype),
        reward=jnp.zeros(shape, jnp.float32),
        terminal=jnp.zeros(shape, bool),
        age=jnp.zeros(shape, jnp.int32),
        allowed=jnp.zeros((*shape, spec.actions), bool) if masked else None,
    )


def remembered(window: Memory, slot, row: Memory) -> Memory:
    """The window with one row written into a slot, or several rows into several slots."""
    return jax.tree.map(lambda column, value: column.at[slot].set(value), window, row)


remember = jax.jit(remembered, donate_argnames="window")


def grown(age: Any, ended: Any, stack: int) -> Any:
    """The number of earlier frames of the next step of every lane."""
    return ((age + 1).clip(max=stack) * ~ended).astype("int32")


@dataclass(frozen=True)
class Recall:
    """Makes transitions from a window; an item is the slots and lanes of a minibatch, (2, B)."""

    stack: int
    gamma: float
    clip: float | None
    scale: float = 1.0
    next_actions: bool = False  # transitions have the next action that was played

    def __call__(self, window: Memory, item) -> Transition:
        slot, lane = item
        following = (slot + 1) % window.reward.shape[0]
        reward = window.reward[slot, lane] if self.scale == 1 else self.scale * window.reward[slot, lane]
        age, allowed = window.age[slot, lane], window.allowed
        return Transition(
            observation=self._stacked(window, slot, lane, age),
            action=window.action[slot, lane],
            reward=reward if self.clip is None else jnp.clip(reward, -self.clip, self.clip),
            discount=self.gamma * (1.0 - window.terminal[slot, lane]),
            next_observation=self._stacked(window, following, lane, age + 1),
            allowed=None if allowed is None else allowed[slot, lane],
            next_allowed=None if allowed is None else allowed[following, lane],
            next_action=window.action[following, lane] if self.next_actions else None,
            next_logged=~window.terminal[slot, lane] if self.next_actions else None,
        )

    def _stacked(self, window: Memory, slot, lane, age):
        slots = window.reward.shape[0]
        return stacked(lambda back: window.frame[(slot - back) % slots, lane], age, self.stack)


@dataclass(frozen=True)
class Mixed:
    """Makes minibatches of which a part is from the window and the rest from an older log."""

    recall: Recall
    older: Any  # the `minibatch` of the older log's feed

    def __call__(self, resident, item) -> Transition:
        played, logged = self.recall(resident[0], item[0]), self.older(resident[1], item[1])
        parts = _masked_like(played, logged), _masked_like(logged, played)
        return jax.tree.map(lambda *columns: jnp.concatenate(columns), *parts)


def _masked_like(batch: Transition, other: Transition) -> Transition:
    """The batch with masks if the other has them; where none are known, every action could be chosen."""
    if batch.allowed is not None or other.allowed is None:
        return batch
    every = jnp.ones((len(batch.reward), other.allowed.shape[-1]), bool)
    return batch._replace(allowed=every, next_allowed=every)


class Replay:
    """Online agents, one for each seed, that learn from a window of their last steps. Each seed has the same
    number of consecutive lanes and learns only from them; with `older`, the log of each seed, a share
    `settings.mix` of each of its minibatches is from there. The settings are a Collection."""

    def __init__(
        self,
        learner: Learner,
        state: TrainState,
        settings: Any,
        seeds: tuple[int, ...],
        older: list[View] | None = None,
        *,
        masked: bool = False,
    ):
        self.learner, self.state, self._settings, self._seeds = learner, state, settings, seeds
        self._lanes, self._stack = settings.lanes * len(seeds), learner.spec.stack
        self._slots = max(settings.window // settings.lanes, self._stack + 2)
        self._window = empty_memory(learner.spec, self._slots, self._lanes, masked=masked)
        reads, rewards = learner.agent.reads_next_action, (settings.clip_rewards, settings.reward_scale)
        self.recall = Recall(self._stack, settings.gamma, *rewards, reads)
        self._older = None
        if older and settings.mixed:
            each = zip(older, seeds, strict=True)
            (clip, scale), gamma = rewards, settings.gamma
            self._older = feed_of(
                [Sampler(log, settings.mixed, gamma, 1, clip, seed, scale, reads) for log, seed in each]
            )
        self._batch = settings.batch - settings.mixed
        self._rows, self._updates = 0, int(state.step)
        self._losses: dict = {}
        self._prepared: tuple[tuple[int, int, int], Any] = (0, 0, 0), None
        self._truncated = np.zeros((self._slots, self._lanes), bool)
        self._age = np.zeros(self._lanes, np.int32)

    def add(self, frame, action, reward, terminal, truncated, allowed=None) -> None:
        """Write one row over the oldest."""
        slot = self._rows % self._slots
        row = Memory(frame, action, reward, terminal, self._age, allowed)
        self._window = remember(self._window, slot, row)
        self._truncated[slot] = truncated
        self._age = grown(self._age, terminal | truncated, self._stack)
        self._rows += 1

    def due_at_each(self, steps: np.ndarray) -> int | None:
        """The number of gradient steps that are due at each of these agent steps, one per row; None if it is
        not the same for all, or if these rows would overwrite too much of the window."""
        scheduled = np.maximum(0, steps - self._settings.warm_up) // self._settings.update_period
        due = np.diff(scheduled, prepend=self._updates)
        if self._older is not None:
            return None  # a program of many rows would have to hold the older log too
        same = (due == due[0]).all() and (due[0] == 0 or self._drawable())
        return int(due[0]) if same and self._slots > 2 * len(steps) + self._stack else None

    def due(self, step: int) -> int:
        """The number of gradient steps that are due at this agent step."""
        due = max(0, step - self._settings.warm_up) // self._settings.update_period - self._updates
        return due if due > 0 and self._drawable() else 0

    def prepare(self, step: int) -> None:
        """Draw the minibatches that will be due at this step, one row later, while an accelerator is busy: it
        would have to wait for them otherwise."""
        due = self.due(step)
        if due:
            items = self.draw(self._updates, due, self._batch, later=1)
            self._prepared = (self._rows + 1, self._updates, due), items

    def learn(self, step: int, at_most: int | None = None) -> None:
        """Take the gradient steps that are due at this agent step, at most `at_most` of them."""
        due = self.due(step) if at_most is None else min(self.due(step), at_most)
        if not due:
            return
        asked, items = self._prepared
        if asked != (self._rows, self._updates, due):
            items = self.draw(self._updates, due, self._batch)
        minibatch: Any = self.recall
        resident: Any = self._window
        if self._older is not None:
            minibatch, resident = Mixed(self.recall, self._older.minibatch), (resident, self._older.resident)
            items = items, self._older.items(self._updates, due)
        self.state, self._losses = advance(self.learner, self.state, minibatch, resident, items)
        self._updates += due

    def losses(self) -> list[dict[str, float]]:
        """The mean losses of each seed over the last gradient steps."""
        means = {f"loss_{name}": np.mean(values, axis=0) for name, values in self._losses.items()}
        return [
            {name: float(mean[place]) for name, mean in means.items()} for place in range(len(self._seeds))
        ]

    def _oldest(self, rows: int) -> int:
        """The first row whose whole stack is in the window, after so many rows."""
        return 0 if rows <= self._slots else rows - self._slots + self._stack - 1

    def _drawable(self) -> bool:
        """Is there a step to draw for each seed? At the start and after a resumption there may be none."""
        missing = np.ones(len(self._seeds), bool)
        for row in range(self._oldest(self._rows), self._rows - 1):
            missing &= self._truncated[row % self._slots].reshape(len(self._seeds), -1).all(axis=1)
            if not missing.any():
                return True
        return False

    def draw(self, first_update: int, updates: int, batch: int, *, later: int = 0) -> np.ndarray:
        """The minibatches of these updates, (updates, seeds, 2, batch): slots and lanes.

        Exactly uniform over the steps whose successor and earlier frames are in the window. Truncated steps
        are excluded: the recording has their final observations, but the next slot belongs to the next
        episode. `later` draws as if there were so many more rows, none of them truncated.
        """
        rows = self._rows + later
        return self._drawn(self._stream(first_update), updates, batch, self._oldest(rows), rows - 1)

    def draw_ahead(self, rows: int, updates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each of the next rows its slot, its minibatches, (rows, updates, seeds, 2, batch), and as many
        spares. Spares are drawn from known steps that stay in the window; they replace steps of these rows
        that turn out to be truncated."""
        slots = (self._rows + np.arange(rows)) % self._slots
        batch, seeds = self._settings.batch, len(self._seeds)
        if not updates:
            nothing = np.zeros((rows, 0, seeds, 2, batch), np.int32)
            return slots, nothing, nothing
        first = self._updates + updates * np.arange(rows)
        items = [self.draw(int(first[row]), updates, batch, later=row) for row in range(rows)]
        stays, known = self._oldest(self._rows + rows), self._rows - 1
        spares = self._drawn(self._stream(self._updates, spare=1), rows * updates, batch, stays, known)
        return slots, np.stack(items), spares.reshape(rows, updates, seeds, 2, batch)

    def _stream(self, update: int, spare: int = 0) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=self._seeds[0], counter=update << 64 | spare << 192))

    def _drawn(
        self, random: np.random.Generator, updates: int, batch: int, first: int, last: int
    ) -> np.ndarray:
        """Uniform over the rows from `first` to before `last`."""
        lanes, seeds = self._settings.lanes, len(self._seeds)
        count, first_lane = (last - first) * lanes, lanes * np.arange(seeds)[:, None]
        drawn = random.integers(0, count, (updates, seeds, batch))
        while True:
            row, lane = drawn // lanes + first, first_lane + drawn % lanes
            slot = row % self._slots
            refused = self._truncated[slot, lane] & (row < self._rows)
            if not refused.any():
                return np.stack([slot, lane], axis=2).astype(np.int32)
            drawn[refused] = random.integers(0, count, refused.sum())

    def lend(self) -> tuple[TrainState, Memory, np.ndarray]:
        """The state for a program that plays and learns; afterwards call `give_back`."""
        return self.state, self._window, self._age

    def give_back(self, state: TrainState, window: Memory, age, truncated: np.ndarray, losses: dict) -> None:
        """Take the state back after the rows of `truncated`; the losses are (rows, updates, seeds)."""
        self.state, self._window, self._age = state, window, np.asarray(age)
        rows, updates = len(truncated), next(iter(losses.values())).shape[1] if losses else 0
        self._truncated[(self._rows + np.arange(rows)) % self._slots] = truncated
        self._rows += rows
        self._updates += rows * updates
        if updates:
            self._losses = {name: values[-1] for name, values in losses.items()}

    def refill(self, path: Path, steps: int, *, goes_on: bool = False) -> None:
        """Fill the window with the recorded steps up to a step. `goes_on`: the same episodes continue, so the
        window is the same as without the interruption."""
        if not steps:
            return
        rows = steps // self._settings.lanes
        recorded = Dataset.open(path).first(rows * self._lanes).last(self._slots * self._lanes)
        timeline, order = recorded.timeline, recorded.steps()
        order = order[np.argsort(timeline.time[order])].reshape(-1, self._lanes)
        masks = timeline.allowed
        # The last step of a lane counts as truncated, because new episodes follow it.
        truncated = timeline.truncated | (np.append(np.diff(timeline.lane) != 0, True) & ~timeline.terminal)
        if goes_on:
            truncated[order[-1]] = timeline.truncated[order[-1]]
        episode = timeline.episode_of(order)
        # A stack reaches back to the beginning of its episode or of this window, whichever is later.
        age = np.minimum(order - timeline.episode_starts[episode], np.arange(len(order))[:, None])
        for first in range(0, len(order), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            row = order[part]
            frame = timeline.frames(row + episode[part])
            age_there = np.minimum(age[part], self._stack).astype(np.int32)
            there = Memory(
                frame,
                timeline.action[row],
                timeline.reward[row],
                timeline.terminal[row],
                age_there,
                None if masks is None else masks[row],
            )
            slots = (rows - len(order) + first + np.arange(len(row))) % self._slots
            self._window = remember(self._window, slots, there)
            self._truncated[slots] = truncated[row]
        self._rows = rows
        if goes_on:
            last = order[-1]
            ended = timeline.terminal[last] | timeline.truncated[last]
            self._age = grown(np.minimum(age[-1], self._stack), ended, self._stack)
