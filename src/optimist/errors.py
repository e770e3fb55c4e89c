"""Errors that the user can fix: each has a message of one line that names the remedy, and an exit code."""

import difflib
import logging
import shlex
from collections.abc import Iterable, Sequence

SHOWN = 40  # known words in a message: more than there are agents
log = logging.getLogger("optimist")


class OptimistError(Exception):
    """An error that the user can fix; the message says what happened and what to do."""

    exit_code = 1

    def __str__(self) -> str:
        """The message in one line, whatever letters a path or a value in it has."""
        return "".join(letter if letter.isprintable() else "?" for letter in super().__str__())


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


class UndecidedError(OptimistError):
    """A question that the log cannot answer: no policy was chosen."""

    exit_code = 7


class StorageError(OptimistError):
    """The disk is full, read-only, or cannot be written for another reason."""

    exit_code = 6


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'did you mean "rem"?', or the list of known words: the end of a message about an unknown word."""
    known = sorted(known)
    close = closest(word, known)
    return f'did you mean "{close}"?' if close else f"known: {some_of(known, SHOWN)}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant: by its initials ("lr"), its last part, or a few letters off."""
    names = {_letters(name): name for name in reversed(list(known))}
    parts = {whole.replace("/", ".").rpartition(".")[2]: name for whole, name in names.items()}
    initials = {"".join(each[0] for each in part.split()): name for part, name in parts.items() if part}
    meant, spelled = _letters(word), {**parts, **names}
    if len(meant) > 1 and meant in {**initials, **spelled}:
        return {**initials, **spelled}[meant]
    cutoff = 0.66 if len(meant) < 5 else 0.7  # one of three letters may differ: "rme" is "rem"
    alike = difflib.get_close_matches(meant, spelled, n=1, cutoff=cutoff)
    longer = [form for form in spelled if min(len(meant), len(form)) > 2]
    begun = [form for form in longer if meant.startswith(form) or form.startswith(meant)]
    return next((spelled[form] for form in (*alike, *begun)), None)


def _letters(word: str) -> str:
    """The word without the signs in which spellings differ: "--learning-rate", "learning_rate"."""
    return word.lower().lstrip("-").replace("-", " ").replace("_", " ").strip()


def in_one_line(value: object, most: int = 80) -> str:
    """A value from a file as text for a message: short, and without control characters."""
    text = str(value)
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:most])
    return shown + ("..." if len(text) > most else "")


def command_line(*words: object) -> str:
    """A command that people copy: a space in a path does not make two words."""
    return shlex.join(["optimist", *map(str, words)])


def some_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first `most` names and the number of the others: 'Pong, Qbert and 3 more'."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + rest
