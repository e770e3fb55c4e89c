"""Where the episodes of a log end."""

from typing import Any

import numpy as np

from optimist.data.checking import checked_rows, goes_on
from optimist.data.formats._log import Asked, Log, Part, with_following
from optimist.errors import DataError, in_one_line


class Labels:
    """The labels of episodes, of which none may come again."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()
        self.early: str | None = None  # the first episode that goes on after its end

    def ends(self, part: Part, following: Part | None, first: int) -> np.ndarray:
        """Whether a row is truncated: where its column says so, and where the label changes."""
        labels = part["episodes"]
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row = int((~np.isfinite(labels)).argmax()) + first
            raise DataError(f"episodes hold NaN or infinity (first in row {row}); give every row a label")
        last = np.append(labels[1:] != labels[:-1], True)
        if following is not None:
            last[-1] = following["episodes"][0] != labels[-1]
        for row in np.flatnonzero(last).tolist():
            label = _plain(labels[row])
            if label in self.seen:
                begin = row - int(np.argmax((labels[: row + 1] != labels[row])[::-1])) + 1 if row else row
                raise DataError(
                    f"episode {in_one_line(label)} appears again near row {begin + first}, after another "
                    "one: sort the rows by episode and time"
                )
            self.seen.add(label)
        terminal, truncated = (
            _flags(part, name, len(labels), first) for name in ("terminals", "truncations")
        )
        self.early = self.early or goes_on(labels, last, terminal | truncated, first)
        return (last & ~terminal) | truncated


def _flags(part: Part, name: str, count: int, first: int) -> np.ndarray:
    """A column of ends; none if the log lacks it."""
    if name not in part:
        return np.zeros(count, bool)
    return checked_rows(name, part[name], (), "bool", first)


def _plain(label: Any) -> Any:
    """A label that may be compared and shown; of bytes or decimal numbers NumPy keeps Python's own."""
    return label.item() if isinstance(label, np.generic) else label


def check_ends(log: Log, asked: Asked) -> None:
    """Where time limits end episodes cannot be known from observations and terminals alone."""
    if asked.every_end_is_terminal and "episodes" in log.columns and "truncations" not in log.columns:
        _check_labelled_ends(log)
    if {"truncations", "next_observations", "episodes", "frames"} & set(log.columns):
        return
    flags = [part["terminals"].astype(bool) for part in log.parts(["terminals"])]
    terminal = np.concatenate(flags) if flags else np.zeros(0, bool)
    if asked.every_end_is_terminal:
        if len(terminal) and not terminal.any():
            raise DataError(
                "no step of the log is terminal, so no episode ends: give --episodes or --truncations"
            )
        return
    if not terminal.all():
        raise DataError(
            "terminals do not show where time limits ended episodes: name a column of truncations, episodes "
            "or next observations; --truncations no means that every episode ends with a terminal step"
        )


def _check_labelled_ends(log: Log) -> None:
    """Raise DataError for an episode that ends without a terminal step, although no time limit cut it; or
    whose rows are not together or not in order, which looks alike."""
    labels, first, open_end = Labels(), 0, None
    for part, following in with_following(log.parts(["episodes", "terminals"])):
        ends = labels.ends(part, following, first)
        if open_end is None and ends.any():
            row = int(ends.argmax())
            open_end = (in_one_line(_plain(part["episodes"][row])), row + first)
        first += len(ends)
    if open_end:
        if labels.early:
            raise DataError(
                f"{labels.early} (and episode {open_end[0]} ends in row {open_end[1]} without an end)"
            )
        raise DataError(
            f"episode {open_end[0]} ends in row {open_end[1]} without a terminal step, but --truncations "
            "no says "
            "that no episode was cut: mark the row as terminal, or omit --truncations no"
        )
