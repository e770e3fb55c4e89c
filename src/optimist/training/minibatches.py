"""What makes minibatches in the compiled program: from frames on the device, or from those of each step."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.data.sampling import Rows, window
from optimist.data.timeline import earlier, stacked
from optimist.data.transition import Spec, Transition
from optimist.training.packed import frames_at


class StreamedBatch(NamedTuple):
    """Transitions with their frames, which the device stacks: so each frame is transferred once."""

    frames: Any  # (B, frames of a transition, *frame_shape)
    age: Any
    next_age: Any
    action: Any
    reward: Any
    discount: Any
    allowed: Any = None
    next_allowed: Any = None
    next_action: Any = None
    next_logged: Any = None


def streamed(frames: Any, rows: Rows) -> StreamedBatch:
    columns = rows._asdict()
    return StreamedBatch(frames, **{name: columns[name] for name in StreamedBatch._fields[1:]})


@dataclass(frozen=True)
class Gather:
    """Makes stacked transitions from resident frames."""

    stack: int
    actions: int = 0

    def __call__(self, resident, positions) -> Transition:
        frames, rows = resident
        row = jax.tree.map(lambda column: column[positions], rows)

        def observation(frame, age):
            return stacked(lambda back: frames[earlier(frame, age, back)], age, self.stack)

        return _transition(
            row,
            self.actions,
            observation=observation(row.frame, row.age),
            next_observation=observation(row.next_frame, row.next_age),
        )


def _transition(row: Rows | StreamedBatch, actions: int, **observations: Any) -> Transition:
    """The transition of a row, with its masks, (..., actions), if they were logged."""

    def mask(bits):
        return None if bits is None else jnp.unpackbits(bits, axis=-1, count=actions).astype(bool)

    return Transition(
        **observations,
        action=row.action,
        reward=row.reward,
        discount=row.discount,
        allowed=mask(row.allowed),
        next_allowed=mask(row.next_allowed),
        next_action=row.next_action,
        next_logged=row.next_logged,
    )


@dataclass(frozen=True)
class Join:
    """Makes stacked transitions from their frames, (B, frames of a transition, ...): the observation's stack
    comes first, the next observation's last."""

    stack: int
    actions: int = 0

    def __call__(self, resident, item: StreamedBatch) -> Transition:
        last = self.stack - 1
        return _transition(
            item,
            self.actions,
            observation=stacked(lambda back: item.frames[:, last - back], item.age, self.stack),
            next_observation=stacked(lambda back: item.frames[:, -1 - back], item.next_age, self.stack),
        )


@dataclass(frozen=True)
class Unpack:
    """Makes stacked transitions from resident frames that are packed."""

    spec: Spec
    n_step: int

    def __call__(self, resident, positions) -> Transition:
        packed, rows = resident
        row = jax.tree.map(lambda column: column[positions], rows)
        numbers = window(row, self.spec.stack, self.n_step)  # so each frame is decoded once
        item = streamed(frames_at(packed, numbers, self.spec), row)
        return Join(self.spec.stack, self.spec.actions)((), item)
