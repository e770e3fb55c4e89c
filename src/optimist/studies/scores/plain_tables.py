"""Tables as text that other programs read: Markdown and CSV."""

import csv
import io
from collections.abc import Iterable, Sequence


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The lines of a table, without a line's end after the last."""
    return "\n".join(_line(values) for values in (heads, ["---"] * len(heads), *rows))


def csv_table(heads: Sequence[str], rows: Iterable[Sequence]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *rows])
    return text.getvalue()


def _line(values: Sequence[str]) -> str:
    return f"| {' | '.join(value.replace('|', chr(92) + '|') for value in values)} |"
