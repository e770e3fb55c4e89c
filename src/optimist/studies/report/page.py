"""Writes pages from templates; figures, scripts and files are embedded in them."""

import base64
import gzip
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup
from matplotlib.figure import Figure

from optimist.data.disk.files import make_folder, write_whole
from optimist.studies.report import drawing
from optimist.studies.sheet import as_html

# Variables of the page's style replace matplotlib's colours, so that figures have the page's dark theme.
_THEMED = {drawing.INK: "var(--ink)", drawing.FAINT: "var(--faint)", drawing.PAPER: "var(--paper)"}

SORTING = ("sort.js",)
CHART = ("uPlot.iife.min.js", "chart.js", *SORTING)  # uPlot (MIT) draws the curves
LARGE = 2**20  # files of this many bytes or more are compressed, so that a phone can open the page
_PIXELS = 96  # per inch in CSS
_SMALLEST = 0.62  # smallest scale of a figure at which its text can be read


class Picture(NamedTuple):
    """A figure in a page: as wide as the page allows, between `least` and `width` pixels."""

    title: str
    caption: str
    svg: Markup
    width: int
    least: int


class Link(NamedTuple):
    """A file embedded in the page."""

    name: str
    words: str
    href: str


def write_html(path: Path, template: str, *, scripts: Sequence[str] = SORTING, **content: Any) -> None:
    """Write a page from a template; its security policy allows only its own scripts."""
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
    make_folder(path.parent)
    write_whole(path, environment.get_template(template).render(**content).encode())


def static(name: str) -> Markup:
    """A file of the folder `static`, to be embedded unchanged."""
    return Markup(files("optimist.studies.report").joinpath("static").joinpath(name).read_text("utf-8"))


def picture(title: str, caption: str, figure: Figure) -> Picture:
    """A figure as SVG in the page's colours; it is safe markup, because matplotlib escapes text."""
    svg = drawing.svg(drawing.laid_out(figure))
    for colour, variable in _THEMED.items():
        svg = svg.replace(colour, variable)
    width = round(_PIXELS * figure.get_figwidth())
    return Picture(title, caption, Markup(svg), width, round(_SMALLEST * width))


def data_link(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def csv_link(name: str, words: str, text: str) -> Link:
    """A CSV file to download; a large one is compressed, always to the same bytes."""
    content = text.encode()
    if len(content) < LARGE:
        return Link(name, words, data_link("text/csv", content))
    return Link(f"{name}.gz", words, data_link("application/gzip", gzip.compress(content, mtime=0)))
