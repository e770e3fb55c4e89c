"""The two records every floor shares: what a transition is, and what one step of play looks like."""

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optimist.errors import DataError

ROUNDING = 1e-6  # of its largest bound: how far an action of 32 bits may lie outside its box


class Transition(NamedTuple):
    """One step as the losses see it: gamma, n-step and terminal are already folded into `discount`."""

    observation: Any
    action: Any
    reward: Any
    discount: Any
    next_observation: Any


@dataclass(frozen=True)
class Spec:
    """The shapes on which a dataset, an environment and a network agree."""

    frame_shape: tuple[int, ...]  # one observation as it is recorded, unstacked
    frame_dtype: str  # "uint8", "bool" or "float32"
    actions: int = 0  # how many discrete actions; 0 means that actions are vectors
    action_low: tuple[float, ...] = ()  # the bounds of a vector action
    action_high: tuple[float, ...] = ()
    stack: int = 1  # frames joined on the last axis when sampled, oldest first

    def __post_init__(self):
        if self.frame_dtype not in ("uint8", "bool", "float32"):
            raise DataError(f"observations of type {self.frame_dtype}: store uint8, bool or float32")
        if bool(self.actions) == bool(self.action_low):
            raise DataError(
                "a spec needs either a number of discrete actions or the bounds of vector actions"
            )
        pairs = list(zip(self.action_low, self.action_high, strict=False))
        if len(self.action_low) != len(self.action_high) or not all(
            -math.inf < low <= high < math.inf for low, high in pairs
        ):
            raise DataError(
                f"vector actions from {self.action_low} to {self.action_high}: give as many low bounds as "
                "high ones, finite, none above its high one"
            )
        if self.stack < 1 or not self.frame_shape:
            raise DataError(
                f"a stack of {self.stack} frames of shape {self.frame_shape} makes no observation"
            )

    @property
    def discrete(self) -> bool:
        return self.actions > 0

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape a network sees: frames joined on the last axis."""
        return (*self.frame_shape[:-1], self.frame_shape[-1] * self.stack)

    @property
    def action_shape(self) -> tuple[int, ...]:
        return () if self.discrete else (len(self.action_low),)

    @property
    def action_dtype(self) -> np.dtype:
        return np.dtype(np.int32 if self.discrete else np.float32)

    def outside(self, actions: np.ndarray) -> np.ndarray:
        """Which actions, (n, *action_shape), are none of the discrete ones or not in the box, (n,)."""
        if self.discrete:
            return (actions < 0) | (actions >= self.actions)
        low, high = self._box
        inside = (actions >= low) & (actions <= high)  # false for NaN
        return np.any(~inside, axis=-1)

    @cached_property
    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.array(self.action_low), np.array(self.action_high)
        slack = ROUNDING * np.maximum(abs(low), abs(high))
        return low - slack, high + slack

    def as_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict) -> "Spec":
        fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in record.items()}
        return cls(**fields)
