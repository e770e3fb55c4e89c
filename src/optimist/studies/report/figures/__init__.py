"""The figures of a study's page. The folder is the registry: `figures/iqm.py` is the figure "iqm".

A study's file names figures of this folder, and a user's own: a `StudyFigure` as `module:NAME`, or an entry
point of the group `optimist.figures`.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from optimist import plugins
from optimist.errors import UsageError

ONE_POINT = "there is one evaluation, and its scores are in the tables"  # so there is no curve


@dataclass(frozen=True)
class StudyFigure:
    """A kind of figure. `draw(study, finding)` gets the results of the study, and those on one part of its
    data, read at one step. It returns a matplotlib figure, several by their labels, or None if it has nothing
    to show; then the page says what it `needs`."""

    title: str
    caption: str
    draw: Callable[..., Any]
    needs: str = "it has nothing to show"
    of: Literal["part", "reading", "study"] = "part"  # of which there is a figure each


def available() -> list[str]:
    """The names of the files of this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def figure(name: str) -> StudyFigure:
    """The figure of this name; UsageError if there is none."""
    if name in available():
        return importlib.import_module(f"{__name__}.{name}").FIGURE
    own = plugins.find("figures", name, available())
    if not isinstance(own, StudyFigure):
        raise UsageError(
            f'"{name}" is not a figure: it must be an optimist.studies.report.figures.StudyFigure'
        )
    return own


def check(name: str) -> None:
    """Raise UsageError for a name that no figure has; the package's own are not imported, which is slow."""
    if name not in available():
        figure(name)


def file_name(name: str) -> str:
    """ "gaps" for "my_package:gaps"."""
    return re.sub(r"\W+", "-", name.rpartition(":")[2])
