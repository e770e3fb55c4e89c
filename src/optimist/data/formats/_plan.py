"""What the whole of a log decides: its spec, the numbers of its actions, and where its episodes end."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from optimist.data.transition import Spec
from optimist.errors import DataError

Part = dict[str, np.ndarray]
STORED = (
    "observations",
    "actions",
    "rewards",
    "terminals",
    "truncations",
    "next_observations",
    "probabilities",
    "allowed_actions",
)


class Source(Protocol):
    """The part of `Log` that is needed here."""

    @property
    def columns(self) -> Collection[str]: ...

    @property
    def spec(self) -> Spec | None: ...

    def parts(self, names: Collection[str]) -> Iterator[Part]: ...


@dataclass(frozen=True)
class Asked:
    """What the user says about a log."""

    environment: str | None = None
    actions_count: int | None = None
    stack: int = 1
    channels: str | None = None
    every_end_is_terminal: bool = False


@dataclass(frozen=True)
class Plan:
    """How the columns of one log become those of a dataset."""

    spec: Spec
    names: np.ndarray | None  # of the actions, sorted, if these are not 0 to n - 1 already
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, log: Source, asked: Asked) -> "Plan":
        check_ends(log, asked)
        if log.spec is not None:
            spec = log.spec if asked.stack == 1 else replace(log.spec, stack=asked.stack)
            return cls(spec, None)
        raise NotImplementedError

    def parts(self, log: Source) -> Iterator[Part]:
        """The columns as `Intake` takes them."""
        names = {name for name in (*STORED, "episodes") if name in log.columns}
        for part, following in with_following(log.parts(names)):
            if "episodes" in part:
                part["truncations"] = _ends_of(part, following)
            yield {name: self._column(name, part[name]) for name in STORED if name in part}

    def _column(self, name: str, values: np.ndarray) -> np.ndarray:
        if name in ("observations", "next_observations"):
            return values.reshape(len(values), *self.spec.frame_shape)
        return values


def with_following(parts: Iterator[Part]) -> Iterator[tuple[Part, Part | None]]:
    """Every part, with the part after it; None after the last."""
    held: Part | None = None
    for part in parts:
        if not len(next(iter(part.values()))):
            continue
        if held is not None:
            yield held, part
        held = part
    if held is not None:
        yield held, None


def _ends_of(part: Part, following: Part | None) -> np.ndarray:
    """Whether a row is truncated: where the column says so, and where the episode's number changes."""
    labels = part["episodes"]
    changes = np.zeros(len(labels), bool)
    changes[:-1] = labels[1:] != labels[:-1]
    changes[-1] = following is not None and following["episodes"][0] != labels[-1]
    changes &= ~part["terminals"].astype(bool)
    return changes | part["truncations"].astype(bool) if "truncations" in part else changes


def check_ends(log: Source, asked: Asked) -> None:
    """Where time limits end episodes cannot be known from observations and terminals alone."""
    known = {"truncations", "next_observations", "episodes"} & set(log.columns)
    if known or asked.every_end_is_terminal:
        return
    raise DataError("unknown")
