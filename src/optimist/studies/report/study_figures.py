"""Draws the figures of a study's page, and gives its curves to the page's interactive chart."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure

from optimist import plugins
from optimist.studies.plan import folder_names
from optimist.studies.report import drawing, figures
from optimist.studies.report.page import Picture, picture
from optimist.studies.results.findings import StudyResults, short_names
from optimist.studies.scores.curves import mean_curve

OPENING = ("intervals", "iqm", "curves")  # the page of every study begins with these
USUAL = ("medians", "profiles")  # also drawn if the study names no figures
MOST = 200_000  # evaluations; with more, the chart has no single seeds, so that a phone can open the page


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
        result = kind.draw(study, finding)
        for label, figure in (result if isinstance(result, Mapping) else {"": result}).items():
            title = f"{label}: {kind.title}" if label else kind.title
            path = f"{file}-{folder_names(study.agents).get(label, label)}" if label else file
            if figure is not None and kind.of == "study":
                yield path, title, figure
            elif figure is not None:
                yield f"{finding.name}/{path}", study.titled(title, finding), figure


def chart_data(study: StudyResults) -> Markup:
    """The curves as data for static/chart.js: a panel for the interquartile mean over all games, if there are
    several, and one for each game."""
    with_seeds = sum(len(curve) for run in study.runs for curve in run.curves.values()) <= MOST
    panels: list[dict[str, Any]] = []

    def add(name: str, unit: str, agents: dict[str, Any], levels: Mapping[str, float]) -> None:
        panels.append({"name": name, "unit": unit, "agents": agents, "levels": levels})

    for finding in (each for each in study.longest if each.evaluations > 1):
        agents: dict[str, Any] = {}
        if len(finding.file.games) > 1:
            for agent, (at, sure) in study.on_the_way[finding.name].items():
                heights = {"mean": sure.estimate, "low": sure.low, "high": sure.high}
                bands = {name: _short(values) for name, values in heights.items()}
                agents[agent] = {"steps": at, **bands, "seeds": {}}
            zero, one = study.ends(finding.file.games)
            title = study.titled("all games, interquartile mean", finding)
            add(title, "normalised score", agents, {one: 1, zero: 0})
        for game, short in short_names(finding.file.games).items():
            agents = {}
            for agent, by_game in finding.file.agents.items():
                mean, seeds = mean_curve(by_game[game]), {}
                if with_seeds:
                    seeds = {
                        str(seed): _short(curve[step] for step in mean)
                        for seed, curve in by_game[game].items()
                    }
                agents[agent] = {"steps": list(mean), "mean": _short(mean.values()), "seeds": seeds}
            levels = study.levels(finding.part, game)
            add(study.titled(short, finding), "average return", agents, levels)
    if not panels:  # one evaluation is no curve
        return Markup()
    data = {"steps": study.unit, "colours": drawing.COLOURS, "panels": panels}
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def _short(values: Iterable[float]) -> list[float]:
    """The values with five digits, which is finer than any screen."""
    return [float(f"{value:.5g}") for value in values]
