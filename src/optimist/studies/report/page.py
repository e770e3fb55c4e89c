"""What our pages are made of: one template for all, with figures, scripts and files inside them."""

import base64
import gzip
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from optimist.studies.report import figures
from optimist.studies.sheet import as_html

# A theme's colours stand where matplotlib wrote its own, so figures follow the page into the dark.
_THEMED = {figures.INK: "var(--ink)", figures.FAINT: "var(--faint)", figures.PAPER: "var(--paper)"}

SORTING = ("sort.js",)
CHART = ("uPlot.iife.min.js", "chart.js", *SORTING)  # uPlot (MIT) draws the curves
LARGE = 2**20  # bytes from which on a file travels compressed, or the page would not open on a phone
_PIXELS = 96  # of a style sheet's inch
_SMALLEST = 0.62  # of its size, at which the words of a figure can still be read


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


def page(template: str, *, scripts: Sequence[str] = SORTING, **content: Any) -> bytes:
    """The page of a template; only the scripts that are part of it may run there."""
    loader = jinja2.PackageLoader("optimist.studies.report", "templates")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, loader=loader
    )
    environment.globals |= {"sheet": as_html, "static": static}
    script = "\n".join(map(static, scripts))
    if "uPlot.iife.min.js" in scripts:
        script = f"/*\n{static('uPlot.LICENSE')}*/\n{script}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    content |= {"script": Markup(script), "script_hash": Markup(f"sha256-{digest}")}
    return environment.get_template(template).render(**content).encode()


def static(name: str) -> Markup:
    """A file of ours, or of uPlot's, that goes into the page as it is."""
    return Markup(files("optimist.studies.report").joinpath("static").joinpath(name).read_text("utf-8"))


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
