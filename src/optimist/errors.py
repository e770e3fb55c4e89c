"""Errors that the user can fix: each has a message of one line that names the remedy, and an exit code."""

import difflib
import logging
import shlex
from collections.abc import Iterable, Sequence
from os.path import commonprefix

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


def renamed(old: str, new: str) -> None:
    """Warn about a word of an older version, which is still accepted."""
    log.warning('"%s" is called "%s" now', old, new)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'did you mean "rem"?', or the list of known words: the end of a message about an unknown word."""
    known = sorted(known)
    close = closest(word, known)
    return f'did you mean "{close}"?' if close else f"known: {some_of(known, SHOWN)}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant: by its initials ("lr"), its last part, or a few letters off."""
    meant, names = _letters(word), {name: _letters(name) for name in known}
    for spelled in (_whole, _last, _initials, _last_initials):
        exact = [name for name, letters in names.items() if len(meant) > 1 and spelled(letters) == meant]
        if exact:
            return exact[0]
    typos = {
        name: (
            min(_typos(meant, letters), _typos(meant, _last(letters))),
            _typos(meant, letters),
            -len(commonprefix([meant, letters])),  # "seed" is "seeds" rather than "feed"
            len(letters) != len(meant),  # "stepz" is "steps" rather than "step"
        )
        for name, letters in names.items()
    }
    best = min(reversed(typos), key=lambda name: typos[name], default="")  # on ties the newest version
    if best and typos[best][0] <= (1 if len(meant) <= 4 else 2 if len(meant) <= 8 else 3):
        return best
    begun = [
        n for n, letters in names.items() if min(len(meant), len(letters)) > 2 and _begins(meant, letters)
    ]
    alike = difflib.get_close_matches(word, names, n=1, cutoff=0.75) if len(meant) > 5 else []
    return next(iter([*reversed(begun), *alike]), None)


def _whole(letters: str) -> str:
    return letters


def _last(letters: str) -> str:
    """The part after the last dot or slash: "optimizer.learning rate" gives "learning rate"."""
    return letters.replace("/", ".").rpartition(".")[2]


def _initials(letters: str) -> str:
    return "".join(part[0] for part in letters.replace(".", " ").split())


def _last_initials(letters: str) -> str:
    return _initials(_last(letters))


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _letters(word: str) -> str:
    """The word without the signs in which spellings differ: "--learning-rate", "learning_rate"."""
    return word.lower().lstrip("-").replace("-", " ").replace("_", " ").strip()


def _typos(word: str, other: str) -> int:
    """Letters that are missing, extra, wrong or swapped with their neighbour (optimal string alignment)."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


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
