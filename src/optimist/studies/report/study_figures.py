"""Draws the figures of a study's page."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from optimist import plugins
from optimist.studies.folders import folder_names
from optimist.studies.report import drawing, figures
from optimist.studies.report.page import Picture, picture
from optimist.studies.results.findings import StudyResults

OPENING = ("intervals", "iqm", "curves")  # the page of every study begins with these
USUAL = ("medians", "profiles")  # also drawn if the study names no figures


class Drawn(NamedTuple):
    """A figure in the page, and on disk if it is written there."""

    name: str
    path: Path
    picture: Picture


def draw(study: StudyResults, *, are_files: bool = True) -> tuple[list[Drawn], list[str]]:
    """Draw every figure of the study; return them and the reasons why others are left out."""
    drawn: list[Drawn] = []
    left_out = []
    for name in named(study):
        count = len(drawn)
        for place, title, figure in drawings(study, name):
            path = study.out / "results" / f"{place}.png"
            drawn.append(Drawn(name, path, picture(title, figures.figure(name).caption, figure)))
            if are_files:
                drawing.save_png(figure, path)
        if len(drawn) == count:
            left_out.append(f'the figure "{name}" is left out: {figures.figure(name).needs}')
    return drawn, left_out


def named(study: StudyResults) -> tuple[str, ...]:
    """The figures to draw: the opening ones, then those of the study's file or the usual ones."""
    several = len({finding.part for finding in study.findings}) > 1
    others = study.record.figures or (*USUAL, *(("parts",) if several else ()))
    return (*OPENING, *(name for name in others if name not in OPENING))


def drawings(study: StudyResults, name: str) -> Iterator[tuple[str, str, Figure]]:
    """Path below `results`, title and figure of each figure of this kind."""
    plugins.check_trusted("figures", name)  # the name may come from somebody else's folder
    kind, file = figures.figure(name), figures.file_name(name)
    findings = study.findings if kind.of == "reading" else study.longest
    for finding in findings[:1] if kind.of == "study" else findings:
        for label, figure in _labelled(kind.draw(study, finding)).items():
            title = f"{label}: {kind.title}" if label else kind.title
            path = f"{file}-{folder_names(study.agents).get(label, label)}" if label else file
            if kind.of == "study":
                yield path, title, figure
            else:
                yield f"{finding.name}/{path}", study.titled(title, finding), figure


def _labelled(result: Figure | Mapping[str, Figure] | None) -> Mapping[str, Figure]:
    if result is None:
        return {}
    return result if isinstance(result, Mapping) else {"": result}
