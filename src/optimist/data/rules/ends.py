"""Where the episodes of a log end: at terminal steps, at truncations, and where the label changes."""

from typing import Any

import numpy as np

from optimist.data.rules.checks import checked_rows
from optimist.data.rules.log import FRAMES, Log, Part, with_following
from optimist.errors import DataError, in_one_line


class EpisodeLabels:
    """The labels of episodes, of which none may come again."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()
        self.early: str | None = None  # a warning about the first episode that goes on after its end

    def truncations(self, part: Part, following: Part | None, first: int) -> np.ndarray:
        """Whether a row is truncated: where its column says so, and where the label changes."""
        labels = part["episodes"]
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row = int((~np.isfinite(labels)).argmax()) + first
            raise DataError(f"episodes hold NaN or infinity (first in row {row}); give every row a label")
        last = np.append(labels[1:] != labels[:-1], True)
        if following is not None:
            last[-1] = following["episodes"][0] != labels[-1]
        self._add(labels, np.flatnonzero(last), first)
        terminal, truncated = (
            _flags(part, name, len(labels), first) for name in ("terminals", "truncations")
        )
        self.early = self.early or _goes_on(labels, last, terminal | truncated, first)
        return (last & ~terminal) | truncated

    def _add(self, labels: np.ndarray, last: np.ndarray, first: int) -> None:
        """Note the labels of these last rows; DataError if one was noted before."""
        ended = labels[last].tolist()  # Python's own values, which may be compared and shown
        distinct = set(ended)
        if len(distinct) == len(ended) and self.seen.isdisjoint(distinct):
            self.seen |= distinct
            return
        for number, label in enumerate(ended):
            if label in self.seen:
                begin = last[number - 1] + 1 if number else 0
                raise DataError(
                    f"episode {in_one_line(label)} appears again near row {begin + first}, after another "
                    "one: sort the rows by episode and time"
                )
            self.seen.add(label)


def _flags(part: Part, name: str, count: int, first: int) -> np.ndarray:
    """A column of ends; none if the log lacks it."""
    if name not in part:
        return np.zeros(count, bool)
    return checked_rows(name, part[name], (), "bool", first)


def _goes_on(labels: np.ndarray, last: np.ndarray, ended: np.ndarray, first: int) -> str | None:
    """A warning if an episode's label goes on after a row that is marked as an end: rows that are not in the
    order of time look like this, and become many short episodes."""
    early = np.flatnonzero(ended & ~last)
    if not len(early):
        return None
    row = int(early[0])
    return (
        f"episode {in_one_line(labels[row])} goes on after row {row + first}, which is marked as an end: "
        "the rows after it count as another episode; if they are not, sort the rows by time (of a table: "
        "--order)"
    )


def check_ends(log: Log) -> None:
    """Raise DataError unless the log shows where its episodes end: observations and terminals do not show
    where time limits ended them."""
    if log.asked.every_end_is_terminal and "episodes" in log.columns and "truncations" not in log.columns:
        _check_labelled_ends(log)
    if {"truncations", "next_observations", "episodes", FRAMES} & set(log.columns):
        return
    flags = [checked_rows("terminals", part["terminals"], (), "bool", 0) for part in log.parts(["terminals"])]
    terminal = np.concatenate(flags) if flags else np.zeros(0, bool)
    if log.asked.every_end_is_terminal:
        if len(terminal) and not terminal.any():
            raise DataError(
                "--truncations no (truncations=False) says that every episode ends with a terminal step, but "
                "no step is terminal: give episodes, or truncations (all false: one episode without an end)"
            )
    elif not terminal.all():
        raise DataError(
            "terminals do not show where time limits ended episodes: give truncations, episodes or "
            "next_observations; --truncations no (truncations=False) means that every episode ends with a "
            "terminal step"
        )


def _check_labelled_ends(log: Log) -> None:
    """Raise DataError for an episode that ends without a terminal step, although no time limit cut it; or
    whose rows are not together or not in order, which looks alike."""
    labels, first, open_end = EpisodeLabels(), 0, None
    for part, following in with_following(log.parts(["episodes", "terminals"])):
        ends = labels.truncations(part, following, first)
        if open_end is None and ends.any():
            row = int(ends.argmax())
            open_end = (in_one_line(part["episodes"][row]), row + first)
        first += len(ends)
    if open_end is None:
        return
    if labels.early:
        raise DataError(
            f"{labels.early} (and episode {open_end[0]} ends in row {open_end[1]} without an end)"
        )
    raise DataError(
        f"episode {open_end[0]} ends in row {open_end[1]} without a terminal step, but --truncations no "
        "(truncations=False) says that no episode was cut: mark the row as terminal, or give no truncations"
    )
