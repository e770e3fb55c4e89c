"""The curves of a study as data for the interactive chart of its page (static/chart.js)."""

import json
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from optimist.studies.report import drawing
from optimist.studies.results.findings import StudyResults, short_names
from optimist.studies.scores.curves import mean_curve
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.score_files import Seeds

MOST = 200_000  # evaluations; with more, single seeds are not drawn, so that a phone can open the page


def chart_data(study: StudyResults) -> Markup:
    """A panel for the interquartile mean over all games, if there are several, and one for each game."""
    evaluations = sum(len(curve) for run in study.runs for curve in run.curves.values())
    panels = []
    for finding in (each for each in study.longest if each.evaluations > 1):
        panels += [_all_games(study, finding)] if len(finding.file.games) > 1 else []
        panels += _games(study, finding, evaluations <= MOST)
    if not panels:  # one evaluation is no curve
        return Markup()
    data = {"steps": study.unit, "colours": drawing.COLOURS, "panels": panels}
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def _all_games(study: StudyResults, finding: Finding) -> dict[str, Any]:
    zero, one = study.ends(finding.file.games)
    agents = {
        agent: {
            "steps": at,
            "mean": _short(sure.estimate),
            "low": _short(sure.low),
            "high": _short(sure.high),
            "seeds": {},
        }
        for agent, (at, sure) in study.on_the_way[finding.name].items()
    }
    return {
        "name": study.titled("all games, interquartile mean", finding),
        "unit": "normalised score",
        "agents": agents,
        "levels": {one: 1, zero: 0},
    }


def _games(study: StudyResults, finding: Finding, with_seeds: bool) -> Iterable[dict[str, Any]]:
    for game, short in short_names(finding.file.games).items():
        agents = {agent: _agent(games[game], with_seeds) for agent, games in finding.file.agents.items()}
        yield {
            "name": study.titled(short, finding),
            "unit": "average return",
            "agents": agents,
            "levels": study.levels(finding.part, game),
        }


def _agent(seeds: Seeds, with_seeds: bool) -> dict[str, Any]:
    mean = mean_curve(dict(seeds))
    curves = {str(seed): _short(curve[step] for step in mean) for seed, curve in seeds.items()}
    return {"steps": list(mean), "mean": _short(mean.values()), "seeds": curves if with_seeds else {}}


def _short(values: Iterable[float]) -> list[float]:
    """The value with five digits, which is finer than any screen."""
    return [float(f"{value:.5g}") for value in values]
