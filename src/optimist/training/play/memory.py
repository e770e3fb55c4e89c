"""The rows that online agents remember, as arrays on the device, and the transitions made of them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.data.timeline import stacked
from optimist.data.transition import Spec, Transition


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


def remembered(window: Memory, slot, row: Memory) -> Memory:
    """The window with one row written into a slot, or several rows into several slots."""
    return jax.tree.map(lambda column, value: column.at[slot].set(value), window, row)


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


remember = jax.jit(remembered, donate_argnames="window")


def grown(age: Any, ended: Any, stack: int) -> Any:
    """The number of earlier frames of the next step of every lane."""
    return ((age + 1).clip(max=stack) * ~ended).astype("int32")
