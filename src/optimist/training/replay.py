"""The online agent's memory: the last steps of every lane, on the device, sampled uniformly."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.store import Dataset
from optimist.data.transition import Spec, Transition
from optimist.training.homes import side_by_side
from optimist.training.learner import Learner, TrainState, advance

ROWS_AT_ONCE = 256  # vector steps that a refill decodes together


class Window(NamedTuple):
    """A ring of vector steps, (slots, lanes, ...); slot t+1 holds the successors of slot t."""

    frame: Any
    action: Any
    reward: Any
    terminal: Any
    age: Any  # earlier frames of the same episode, as many as a stack needs


def empty_window(spec: Spec, slots: int, lanes: int) -> Window:
    shape = (slots, lanes)
    return Window(
        frame=jnp.zeros((*shape, *spec.frame_shape), spec.frame_dtype),
        action=jnp.zeros((*shape, *spec.action_shape), spec.action_dtype),
        reward=jnp.zeros(shape, jnp.float32),
        terminal=jnp.zeros(shape, bool),
        age=jnp.zeros(shape, jnp.int32),
    )


@dataclass(frozen=True)
class Recall:
    """Transitions out of a window; an item is the slots and lanes of a minibatch, (2, B)."""

    stack: int
    gamma: float
    clip: float | None

    def __call__(self, window: Window, item) -> Transition:
        slot, lane = item
        following = (slot + 1) % window.reward.shape[0]
        reward = window.reward[slot, lane]
        age = window.age[slot, lane]
        return Transition(
            observation=self._stacked(window, slot, lane, age),
            action=window.action[slot, lane],
            reward=reward if self.clip is None else jnp.clip(reward, -self.clip, self.clip),
            discount=self.gamma * (1.0 - window.terminal[slot, lane]),
            next_observation=self._stacked(window, following, lane, age + 1),
        )

    def _stacked(self, window: Window, slot, lane, age):
        images = [self._earlier(window, slot, lane, age, back) for back in range(self.stack - 1, -1, -1)]
        return images[0] if self.stack == 1 else side_by_side(images)

    def _earlier(self, window: Window, slot, lane, age, back: int):
        image = window.frame[(slot - back) % window.reward.shape[0], lane]
        return image * (back <= age).reshape(-1, *(1,) * (image.ndim - 1)).astype(image.dtype)


@partial(jax.jit, donate_argnames="window")
def remember(window: Window, slot, row: Window) -> Window:
    """Write one row over a slot, or several over several."""
    return Window(*(column.at[slot].set(value) for column, value in zip(window, row, strict=True)))


class Replay:
    """Online agents, one of each seed, that learn from a window of what they lately did. Each seed has the
    same number of lanes, one seed's after the other's, and learns from its own."""

    def __init__(self, learner: Learner, state: TrainState, settings, seeds: tuple[int, ...]):
        self.learner, self.state, self._settings, self._seeds = learner, state, settings, seeds
        self._lanes, self._stack = settings.lanes * len(seeds), learner.spec.stack
        self._slots = max(settings.window // settings.lanes, self._stack + 2)
        self._window = empty_window(learner.spec, self._slots, self._lanes)
        self._recall = Recall(self._stack, settings.gamma, settings.clip_rewards)
        self._rows, self._updates = 0, int(state.step)
        self._losses: dict = {}
        self._truncated = np.zeros((self._slots, self._lanes), bool)
        self._age = np.zeros(self._lanes, np.int32)

    def add(self, frame, action, reward, terminal, truncated) -> None:
        """One vector step, over the oldest."""
        slot = self._rows % self._slots
        self._window = remember(self._window, slot, Window(frame, action, reward, terminal, self._age))
        self._truncated[slot] = truncated
        self._age = np.where(terminal | truncated, 0, np.minimum(self._age + 1, self._stack)).astype(np.int32)
        self._rows += 1

    def learn(self, step: int) -> None:
        """The gradient steps that are due at this agent step."""
        due = max(0, step - self._settings.warm_up) // self._settings.update_period - self._updates
        if due < 1 or not self._drawable():
            return
        items = self.draw(self._updates, due, self._settings.batch)
        self.state, self._losses = advance(self.learner, self.state, self._recall, self._window, items)
        self._updates += due

    def losses(self) -> list[dict[str, float]]:
        """Of each seed, the mean over the last gradient steps."""
        means = {f"loss_{name}": np.mean(values, axis=0) for name, values in self._losses.items()}
        return [
            {name: float(mean[place]) for name, mean in means.items()} for place in range(len(self._seeds))
        ]

    def _oldest(self) -> int:
        """The first row whose whole stack is in the window."""
        return 0 if self._rows <= self._slots else self._rows - self._slots + self._stack - 1

    def _drawable(self) -> bool:
        """Is there anything to draw for each? At the very start, and after a resumption, there may not be."""
        missing = np.ones(len(self._seeds), bool)
        for row in range(self._oldest(), self._rows - 1):
            missing &= self._truncated[row % self._slots].reshape(len(self._seeds), -1).all(axis=1)
            if not missing.any():
                return True
        return False

    def draw(self, first_update: int, updates: int, batch: int) -> np.ndarray:
        """The minibatches of these updates, (updates, seeds, 2, batch): slots and lanes.

        Exactly uniform over the steps whose successor and earlier frames are in the window. A truncated step
        is passed over: its final observation is in the log, but here its successor is the next episode.
        """
        oldest, lanes = self._oldest(), self._settings.lanes
        count = (self._rows - 1 - oldest) * lanes
        random = np.random.Generator(np.random.Philox(key=self._seeds[0], counter=first_update << 64))
        drawn = random.integers(0, count, (updates, len(self._seeds), batch))
        first_lane = lanes * np.arange(len(self._seeds))[:, None]
        while True:
            slot, lane = (drawn // lanes + oldest) % self._slots, first_lane + drawn % lanes
            refused = self._truncated[slot, lane]
            if not refused.any():
                return np.stack([slot, lane], axis=2).astype(np.int32)
            drawn[refused] = random.integers(0, count, refused.sum())

    def refill(self, path: Path, steps: int) -> None:
        """Remember the end of what was recorded, as a run that goes on does."""
        if not steps:
            return
        recorded = Dataset.open(path).last(self._slots * self._lanes)
        tape, order = recorded.tape, recorded.steps()
        order = order[np.argsort(tape.time[order])].reshape(-1, self._lanes)
        # A lane ends where play was stopped; the new episodes that follow are not what its last step led to.
        truncated = tape.truncated | (np.append(np.diff(tape.lane) != 0, True) & ~tape.terminal)
        episode = tape.episode_of(order)
        # A stack reaches back to the beginning of its episode or of this window, whichever is nearer.
        age = np.minimum(order - tape.episode_starts[episode], np.arange(len(order))[:, None])
        for first in range(0, len(order), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            row = order[part]
            frame = tape.frames(row + episode[part])
            age_there = np.minimum(age[part], self._stack).astype(np.int32)
            rows = Window(frame, tape.action[row], tape.reward[row], tape.terminal[row], age_there)
            self._window = remember(self._window, first + np.arange(len(row)), rows)
            self._truncated[first : first + len(row)] = truncated[row]
        self._rows = len(order)
