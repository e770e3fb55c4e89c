"""Writes the tables and the figures of a page."""

import csv
import importlib.util
import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from PIL import Image

from optimist.studies.report import drawing
from results.library.scores import RESULTS

PAGES = sorted(path.parent.name for path in RESULTS.glob("*/analyse.py"))
COLOURS = 128  # of a figure's file


@cache
def analysis(page: str) -> ModuleType:
    """The analyse.py of a page."""
    spec = importlib.util.spec_from_file_location(f"results_{page}", RESULTS / page / "analyse.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(page: str, name: str) -> str:
    """The text of a CSV file of a page, computed again."""
    content = analysis(page).TABLES[name]()
    if isinstance(content, str):
        return content
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(content)
    return text.getvalue()


def write(page: str, *, with_figures: bool = True) -> Iterator[Path]:
    """Write the files of a page; their paths."""
    for name in analysis(page).TABLES:
        (RESULTS / page / name).write_text(table(page, name))
        yield RESULTS / page / name
    figures = getattr(analysis(page), "FIGURES", {})
    for name, draw in figures.items() if with_figures else ():
        path = RESULTS / page / name
        drawing.save_png(drawing.laid_out(draw()), path)
        shrink(path)
        yield path


def shrink(path: Path) -> None:
    """Give a picture a palette, which makes it a third as large."""
    picture = Image.open(path).convert("RGB")
    few = picture.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(path, "PNG", optimize=True)
