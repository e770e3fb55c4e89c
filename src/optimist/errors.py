"""The mistakes and mishaps a person can mend: each is one line with its remedy, and an exit code."""

import difflib
from collections.abc import Iterable, Sequence


class OptimistError(Exception):
    """Something a person can mend; the message says what happened and what to do."""

    exit_code = 1


class UsageError(OptimistError):
    """An unknown name or a value that makes no sense."""

    exit_code = 2


class DataError(OptimistError):
    """A dataset that is missing, damaged, empty, or does not fit what is asked of it."""

    exit_code = 3


class RunError(OptimistError):
    """A run folder in use, of another configuration, or without a usable checkpoint."""

    exit_code = 4


class DivergedError(OptimistError):
    """Training produced numbers that are not finite."""

    exit_code = 5


class StorageError(OptimistError):
    """The disk is full, read-only, or otherwise refuses to keep what we write."""

    exit_code = 6


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """' did you mean "rem"?' or the whole list, to end a message about an unknown word."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f'did you mean "{close[0]}"?'
    return f"known: {', '.join(known)}"


def in_one_line(value: object, most: int = 80) -> str:
    """What a file says, fit for a message: short, and without letters that a terminal would obey."""
    text = str(value)
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:most])
    return shown + ("..." if len(text) > most else "")


def some_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """'Pong, Qbert and 3 more': a message stays short however many there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + rest
