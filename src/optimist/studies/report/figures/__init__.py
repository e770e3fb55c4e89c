"""The figures of a study's page. The folder is the registry: `figures/iqm.py` is the figure "iqm".

A study's file names figures of this folder, and a user's own: a `StudyFigure` as `module:NAME`, or an entry
point of the group `optimist.figures`.
"""

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


def figure(name: str) -> StudyFigure:
    """The figure of this name; UsageError if there is none."""
    kind = plugins.find("figures", name)
    kind = getattr(kind, "FIGURE", kind)  # of the files of this folder
    if not isinstance(kind, StudyFigure):
        raise UsageError(
            f'"{name}" is not a figure: it must be an optimist.studies.report.figures.StudyFigure'
        )
    return kind


def check(name: str) -> None:
    """Raise UsageError for a name that no figure has; the package's own are not imported, which is slow."""
    if name not in plugins.own("figures"):
        figure(name)


def file_name(name: str) -> str:
    """ "gaps" for "my_package:gaps"."""
    return re.sub(r"\W+", "-", name.rpartition(":")[2])
