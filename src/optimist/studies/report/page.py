"""What our pages are made of: one template for all, figures and files inside them, tables that sort."""

import base64
import gzip
import hashlib
import importlib.resources
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from optimist.studies.report import figures
from optimist.studies.report.formatting import in_words

# A theme's colours stand where matplotlib wrote its own, so figures follow the page into the dark.
_THEMED = {figures.INK: "var(--ink)", figures.FAINT: "var(--faint)", figures.PAPER: "var(--paper)"}

LARGE = 2**20  # bytes from which on a file travels compressed, or the page would not open on a phone
_PIXELS = 96  # of a style sheet's inch
_SMALLEST = 0.62  # of its size, at which the words of a figure can still be read


class Cell(NamedTuple):
    """What a table shows, and the number it is sorted by."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Table:
    """A table of a page, sorted by a click on a heading; columns of words stand on the left."""

    name: str
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = field(default=())

    def is_words(self, column: int) -> bool:
        return all(row[column].value is None for row in self.rows)


class Picture(NamedTuple):
    """A figure as it stands in a page, in pixels: as wide as there is room, but never unreadably small."""

    title: str
    caption: str
    svg: Markup
    width: int
    least: int


class Link(NamedTuple):
    """A file inside the page."""

    name: str
    words: str
    href: str


def page(template: str, *, sorting: bool = False, **content: Any) -> bytes:
    """The page of a template; only the script that is part of it may run there."""
    loader = jinja2.PackageLoader("optimist.studies.report", "templates")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, loader=loader
    )
    if sorting:
        script = importlib.resources.files(__package__).joinpath("templates/sort.js").read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        content |= {"script": Markup(script), "script_hash": Markup(f"sha256-{digest}")}
    return environment.get_template(template).render(**content).encode()


def inline(drawing: str) -> Markup:
    """SVG from matplotlib, which escapes the text it is given: safe to stand in the page as it is."""
    for colour, variable in _THEMED.items():
        drawing = drawing.replace(colour, variable)
    return Markup(drawing)


def picture(title: str, caption: str, svg: str, inches: float) -> Picture:
    width = round(_PIXELS * inches)
    return Picture(title, caption, inline(svg), width, round(_SMALLEST * width))


def data_link(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def csv_link(name: str, words: str, text: str) -> Link:
    """A table to be saved; a large one is compressed, the same bytes every time."""
    content = text.encode()
    if len(content) < LARGE:
        return Link(name, words, data_link("text/csv", content))
    return Link(f"{name}.gz", words, data_link("application/gzip", gzip.compress(content, mtime=0)))


def in_record(record: Mapping) -> dict[str, str]:
    """A record as a page shows it: names with spaces, values in words."""
    return {
        str(name).replace("_", " "): in_words(value) for name, value in record.items() if value is not None
    }
