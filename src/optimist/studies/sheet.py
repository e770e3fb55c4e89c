"""A table and its four renderings: for a terminal, as Markdown, as CSV and as HTML."""

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from rich import box, markup
from rich.console import Console
from rich.table import Table

PIPED = 200  # characters of a line if the output is not a terminal
LONG = 24  # characters up to which a page does not break a cell
FOLDED = 12  # a page folds tables with more rows


class Cell(NamedTuple):
    """The text of a cell; if it is a number, its value, which sorting and CSV use."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Sheet:
    """A table. A row holds cells, texts or numbers; numbers are shown with few digits."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    def cells(self) -> list[list[Cell]]:
        def cell(value: Any) -> Cell:
            if isinstance(value, Cell):
                return value
            text = "" if value is None else in_words(value)
            return Cell(text, value if isinstance(value, int | float) else None)

        return [[cell(value) for value in row] for row in self.rows]


def print_sheet(sheet: Sheet, console: Console | None = None) -> None:
    """Print a table; lines are longer if the output is not a terminal."""
    console = console or Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED
    shown = any(sheet.heads)
    table = Table(title=markup.escape(sheet.title), title_justify="left", show_header=shown, box=box.SIMPLE)
    table.padding = (0, 1, 0, 0)  # five columns and the longest agent name fit into 80 characters
    cells = sheet.cells()
    for column, (head, words) in enumerate(zip(sheet.heads, _words(sheet, cells), strict=True)):
        widest = max((len(row[column].text) for row in cells), default=0)
        # Headings may be broken into lines, numbers may not.
        table.add_column(
            markup.escape(head), justify="left" if words else "right", min_width=0 if words else widest
        )
    grouped = any(not row[0].text for row in cells)  # a row with an empty first cell belongs to the row above
    for row in cells:
        if grouped and row[0].text:
            table.add_section()
        table.add_row(*(markup.escape(cell.text) for cell in row))
    console.print(table)
    for note in sheet.notes:
        console.print(note, markup=False, highlight=False)


def as_markdown(sheet: Sheet) -> str:
    """The title, the table and the notes."""
    rows = [sheet.heads, ["---"] * len(sheet.heads), *([cell.text for cell in row] for row in sheet.cells())]
    lines = [f"| {' | '.join(value.replace('|', chr(92) + '|') for value in row)} |" for row in rows]
    notes = ["", *(f"- {note}" for note in sheet.notes)] if sheet.notes else []
    return "\n".join([f"# {_capital(sheet.title)}", "", *lines, *notes, ""])


def as_csv(sheet: Sheet) -> str:
    """The heads and the rows only; numbers have all digits."""
    text = io.StringIO()
    values = ([cell.text if cell.value is None else cell.value for cell in row] for row in sheet.cells())
    csv.writer(text, lineterminator="\n").writerows([sheet.heads, *values])
    return text.getvalue()


def records_csv(rows: Sequence[Any]) -> str:
    """Dataclasses as CSV; numbers have all digits. A record or a table in a row has a column for each of its
    fields, `iqm_low` for `row.iqm.low`, and an estimate has the plain name, `iqm`. None is an empty cell."""

    def columns(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
        for name, value in table.items():
            word = "" if name == "estimate" else re.sub(r"\W+", "_", name)
            column = "_".join(filter(None, (prefix, word)))
            if isinstance(value, Mapping):
                yield from columns(value, column)
            elif value is not None:
                yield column, value

    flat = [dict(columns(asdict(row))) for row in rows]
    heads = dict.fromkeys(head for row in sorted(flat, key=len, reverse=True) for head in row)
    text = io.StringIO()
    table = csv.DictWriter(text, list(heads), restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(flat)
    return text.getvalue()


def as_html(sheet: Sheet, name: str) -> Markup:
    """A card of a page: a click on a heading sorts the rows; a long table is folded.

    If consecutive rows have the same first cell, only the first row shows it. On a narrow screen each row is
    a block with the heading beside each cell.
    """
    cells = sheet.cells()
    words = _words(sheet, cells)
    heads = Markup("\n").join(
        Markup('<th scope="col"{}><button type="button">{}</button></th>').format(_kind(word), head)
        for head, word in zip(sheet.heads, words, strict=True)
    )
    rows, before = [], None
    for row in cells:
        again = row[0].text == before
        columns = zip(sheet.heads, row, words, [again, *[False] * len(row)], strict=False)
        inner = Markup("").join(_html_cell(*column) for column in columns)
        rows.append(Markup("<tr{}>{}</tr>").format(Markup("" if again else ' class="first"'), inner))
        before = row[0].text
    table = Markup(
        '<table class="sortable" id="{}">\n<thead><tr>\n{}\n</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>'
    )
    notes = Markup("").join(Markup("<li>{}</li>").format(note) for note in sheet.notes)
    content = table.format(name, heads, Markup("\n").join(rows))
    content += Markup('\n<ul class="plain small">{}</ul>').format(notes) if notes else ""
    title = _capital(sheet.title)
    if len(cells) <= FOLDED:
        return Markup('<section class="card"><h3>{}</h3>\n{}\n</section>').format(title, content)
    shown = Markup('<summary><h3>{}</h3> <span class="small">{} rows</span></summary>').format(
        title, len(cells)
    )
    return Markup('<details class="card">{}\n{}\n</details>').format(shown, content)


def number(value: float) -> str:
    """Few digits, enough to compare: 1,234, 9.1, 0.25."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 1 or value == 0 else 2
    return f"{value:,.{decimals}f}"


def in_words(value: Any) -> str:
    """A value as text; records and lists become 'mean 71.2, longest 900', with semicolons in place of the
    commas if a number has commas."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, Mapping):
        return listed([f"{name} {in_words(inner)}" for name, inner in value.items()])
    if isinstance(value, list | tuple):
        return listed(list(map(in_words, value)))
    return str(value)


def facts_in_words(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts for a page, without the empty ones."""
    known = {name: value for name, value in facts.items() if value not in (None, "")}
    return {str(name).replace("_", " "): in_words(value) for name, value in known.items()}


def listed(words: Sequence[str]) -> str:
    """'59.4, 112', but '59.4; 1,124': the comma of a number separates no words."""
    return ("; " if any("," in word for word in words) else ", ").join(words)


def _words(sheet: Sheet, cells: list[list[Cell]]) -> list[bool]:
    """For each column, whether it has no numbers."""
    return [all(row[column].value is None for row in cells) for column in range(len(sheet.heads))]


def _html_cell(head: str, cell: Cell, words: bool, again: bool) -> Markup:
    sorted_by = "" if cell.value is None else Markup(' data-value="{}"').format(cell.value)
    text = escape(cell.text)
    if "[" in text:  # a line may break before an interval, but not inside it
        estimate, _, interval = text.partition("[")
        text = estimate + "[" + interval.replace(" ", Markup("&nbsp;"))
    kind = _kind(words, again, len(cell.text) > LONG)
    return Markup('<td data-head="{}"{}{}>{}</td>').format(head, kind, sorted_by, text)


def _kind(words: bool, again: bool = False, long: bool = False) -> Markup:
    kinds = [name for name, holds in (("words", words), ("again", again), ("long", words and long)) if holds]
    return Markup(' class="{}"').format(" ".join(kinds)) if kinds else Markup("")


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]
