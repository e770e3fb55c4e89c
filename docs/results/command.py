"""Call the function of a script that the words of its command line fit, or print how to call the script."""

import csv
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

KINDS = (int, Path)  # annotations that words are read as; words for other parameters stay text


def call(usage: str, *ways: Callable[..., Any], **stages: Callable[..., Any]) -> None:
    """The stage that the first word names, with the words after it; else the first of the ways that they fit.

    If they fit none, print `usage`, the docstring of the script, and exit with 2; after --help with 0."""
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print(usage.strip())
        sys.exit(0)
    if words and words[0] in stages:
        stage, *words = words
        ways = (stages[stage],)
    for way in ways:
        if (read := arguments(way, words)) is not None:
            way(*read)
            return
    refuse(usage.strip())


def refuse(reason: str) -> NoReturn:
    print(reason, file=sys.stderr)
    sys.exit(2)


def arguments(way: Callable[..., Any], words: list[str]) -> list[Any] | None:
    """The words as the function's annotations say; None if they do not fit. No script has options."""
    signature = inspect.signature(way)
    kinds = [each.annotation for each in signature.parameters.values()]
    kinds += kinds[-1:] * (len(words) - len(kinds))  # those of `*more`
    try:
        signature.bind(*words)
        if any(word.startswith("-") for word in words):
            return None
        return [kind(word) if kind in KINDS else word for kind, word in zip(kinds, words, strict=False)]
    except (TypeError, ValueError):
        return None


def print_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    csv.writer(sys.stdout, lineterminator="\n").writerows([heads, *rows])
