"""The figures of a study: which of them it gets, and each drawn from what was found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from optimist.studies.folders import folder_names
from optimist.studies.report import figures, paper_figures
from optimist.studies.report.paper_figures import MANY
from optimist.studies.results.findings import Finding, Findings
from optimist.studies.scores import intervals
from optimist.studies.scores.normalisation import better_curve, median_curve, seed_means, seed_medians
from optimist.studies.scores.score_files import Seeds
from optimist.studies.scores.table_one import MAIN, kind_title

OPENING = ("intervals", "iqm", "curves")  # the page of every study begins with these
USUAL = ("medians", "profiles")  # and has these, if the study names none
INTERVALS = (
    "Dots are interquartile means over games and seeds, bars 95% bootstrap intervals. Best was chosen after "
    "the fact, so it flatters; cross-chosen best scores each seed where the other seeds are best."
)
ACROSS = 3  # panels that stand beside each other on a page; of many, small ones, four


@dataclass(frozen=True)
class Drawn:
    """A figure on disk, and how it stands in a page."""

    name: str  # of its kind, as a study's file has it
    path: Path
    title: str
    caption: str
    svg: str
    inches: float  # its width


def draw(findings: Findings) -> tuple[list[Drawn], list[str]]:
    """Every figure of the study, and why others that it names are left out. What a longer reading contains is
    drawn for the longest alone."""
    drawn: list[Drawn] = []
    left_out = []
    for name in named(findings):
        before = len(drawn)
        for place, title, caption, figure in _DRAWINGS[name](findings):
            path = findings.out / "results" / f"{place}.png"
            figures.save_png(figures.laid_out(figure), path)
            drawn.append(Drawn(name, path, title, caption, figures.svg(figure), figure.get_figwidth()))
        if len(drawn) == before:
            left_out.append(f'the figure "{name}" is left out: {_NEEDS[name]}')
    return drawn, left_out


def named(findings: Findings) -> tuple[str, ...]:
    """The opening, and those of the study's file; where it names none, the usual."""
    several = len({finding.part for finding in findings.found}) > 1
    others = findings.record.figures or (*USUAL, *(("parts",) if several else ()))
    return (*OPENING, *(name for name in others if name not in OPENING))


_NEEDS = {  # why a figure of that name may have nothing to show
    "bars": "it compares games, and there is only one",
    "spread": "it needs the logs, and their complete episodes",
    "parts": "no game is finished on every part of the data",
}

Drawings = Iterator[tuple[str, str, str, Figure]]  # where it goes, its title, its caption, and the figure


def _medians(findings: Findings) -> Drawings:
    for finding in findings.longest:
        agents = finding.file.agents
        means = {agent: seed_means(by_game) for agent, by_game in agents.items()}
        figure = paper_figures.medians(
            {agent: median_curve(curves, findings.by) for agent, curves in means.items()},
            {agent: seed_medians(by_game, findings.by) for agent, by_game in agents.items()},
            {agent: better_curve(curves, findings.by) for agent, curves in means.items()},
            yardstick=findings.by.yardstick,
            games=len(finding.file.games),
            xlabel=steps(findings),
        )
        caption = (
            "Thick: the median over games of the mean over seeds; thin: of each seed alone. "
            f"100% is {findings.by.yardstick}."
        )
        yield (
            f"{finding.name}/medians",
            title_of("Median normalised score (Figure 1)", findings, finding),
            caption,
            figure,
        )


def _bars(findings: Findings) -> Drawings:
    several = [finding for finding in findings.found if len(finding.file.games) > 1]  # one bar says little
    folders = folder_names(findings.agents)
    for finding in several:
        for agent, games in finding.games.items():
            short = short_names([row.game for row in games])
            kinds = {
                kind: {short[row.game]: getattr(row.improvement, kind) for row in games}
                for kind in ("best", "last", "mean_of_last")
            }
            titles = {kind: kind_title(kind, finding.evaluations) for kind in kinds}
            figure = paper_figures.improvement_bars(
                kinds["best"],
                title=agent,
                yardstick=findings.by.yardstick,
                bars=titles["best"],
                marks={titles[kind]: kinds[kind] for kind in ("last", "mean_of_last")},
            )
            caption = "Mean over seeds, normalised; linear up to 10% and logarithmic beyond."
            title = title_of(f"{agent}: improvement per game (Figure 4)", findings, finding)
            yield f"{finding.name}/bars-{folders[agent]}", title, caption, figure


def _curves(findings: Findings) -> Drawings:
    for finding in findings.longest:
        games, agents = finding.file.games, finding.file.agents
        short = short_names(games)
        figure = paper_figures.curve_grid(
            {short[game]: {agent: by_game[game] for agent, by_game in agents.items()} for game in games},
            {short[game]: levels(findings, finding.part, game) for game in games},
            xlabel=steps(findings),
            columns=_across(len(games)),
            traces=len(games) < MANY,
        )
        caption = (
            f"Mean over seeds and one deviation around it, smoothed over {paper_figures.WINDOW} evaluations. "
            "The lines are those of the data that was learned from."
        )
        yield (
            f"{finding.name}/curves",
            title_of("Learning curves (Figures 3 and 7)", findings, finding),
            caption,
            figure,
        )


def _spread(findings: Findings) -> Drawings:
    """Figure 8: every evaluation as it was."""
    for finding in findings.longest:
        short = short_names(finding.file.games)
        panels = [
            (
                short[game],
                {agent: _mean_and_deviation(by_game[game]) for agent, by_game in finding.file.agents.items()},
                findings.logs[game].average[finding.part],
            )
            for game in finding.file.games
            if game in findings.logs and finding.part in findings.logs[game].average
        ]
        if panels:
            caption = "Mean over runs and one standard deviation; black is the mean return in the data."
            title = title_of("Returns against the data's (Figure 8)", findings, finding)
            yield f"{finding.name}/spread", title, caption, paper_figures.spread(panels)


def _mean_and_deviation(seeds: Seeds) -> dict[int, tuple[float, float]]:
    shared = sorted(set.intersection(*(set(curve) for curve in seeds.values())))
    values = {step: [curve[step] for curve in seeds.values()] for step in shared}
    return {step: (float(np.mean(each)), float(np.std(each))) for step, each in values.items()}


def _profiles(findings: Findings) -> Drawings:
    for finding in findings.found:
        found = intervals.profiles(finding.scores)
        figure = paper_figures.profiles(
            {kind_title(kind, finding.evaluations): found[kind] for kind in MAIN if kind in found}
        )
        caption = "The share of runs on all games that score more, with pointwise 95% bootstrap bands."
        yield f"{finding.name}/profiles", title_of("Performance profiles", findings, finding), caption, figure


def _parts(findings: Findings) -> Drawings:
    """Figure 6: a row per agent, a panel per game, a curve per part of the data."""
    longest = {finding.part: finding for finding in findings.longest}
    games = [game for game in next(iter(longest.values())).file.games if _everywhere(game, longest)]
    if not games:
        return
    by, short = findings.by, short_names(games)
    panels = {
        f"{agent}, {short[game]}": {
            part: {
                seed: {step: by.normalised(game, score) for step, score in curve.items()}
                for seed, curve in finding.file.agents[agent][game].items()
            }
            for part, finding in longest.items()
            if agent in finding.file.agents
        }
        for agent in findings.agents
        for game in games
        if any(agent in finding.file.agents for finding in longest.values())
    }
    figure = paper_figures.curve_grid(
        panels,
        {panel: {by.yardstick: 1.0} for panel in panels},
        xlabel=steps(findings),
        ylabel="normalised score",
        columns=len(games) if len(games) <= 5 else ACROSS,
        traces=False,
    )
    caption = (
        f"Mean over seeds and one deviation around it, smoothed over {paper_figures.WINDOW} evaluations; "
        f"1 is {by.yardstick}. A colour is a part of the data."
    )
    yield "parts", "How much comes of each part of the data (Figure 6)", caption, figure


def _intervals(findings: Findings) -> Drawings:
    for finding in findings.longest:
        figure = paper_figures.interval_plot(finding.certainty, finding.evaluations, findings.by.yardstick)
        caption = INTERVALS
        yield (
            f"{finding.name}/intervals",
            title_of("Interquartile mean of each agent", findings, finding),
            caption,
            figure,
        )


def _iqm(findings: Findings) -> Drawings:
    for finding in findings.longest:
        curves = findings.on_the_way[finding.name]
        figure = paper_figures.iqm_over_training(curves, findings.by.yardstick, steps(findings))
        caption = "Interquartile mean over games and seeds at each evaluation, with pointwise 95% bands."
        yield (
            f"{finding.name}/iqm",
            title_of("Interquartile mean during training", findings, finding),
            caption,
            figure,
        )


_DRAWINGS: dict[str, Callable[[Findings], Drawings]] = {
    "intervals": _intervals,
    "iqm": _iqm,
    "medians": _medians,
    "bars": _bars,
    "curves": _curves,
    "spread": _spread,
    "profiles": _profiles,
    "parts": _parts,
}


def short_names(games: Sequence[str]) -> dict[str, str]:
    """ "Breakout" for "atari/Breakout", where all games are of one family."""
    one = len({game.partition("/")[0] for game in games}) == 1
    return {game: game.partition("/")[2] if one and "/" in game else game for game in games}


def steps(findings: Findings) -> str:
    """What the evaluations are counted in."""
    return "gradient updates" if findings.offline else "steps played"


def _everywhere(game: str, found: dict[str, Finding]) -> bool:
    return all(game in finding.file.games for finding in found.values())


def levels(findings: Findings, part: str, game: str) -> dict[str, float]:
    """The paper's two lines where the log is there, and random play."""
    lines = {}
    if game in findings.logs and part in findings.logs[game].best:
        lines = {
            "best policy in the data": findings.logs[game].best[part],
            "average behaviour": findings.logs[game].average[part],
        }
    return {**lines, "random play": findings.by.random_scores[game]}


def _across(games: int) -> int:
    return 4 if games >= MANY else min(games, ACROSS)


def title_of(words: str, findings: Findings, finding: Finding) -> str:
    """With the part and the reading where there are others."""
    several = len({other.part for other in findings.found}) > 1
    part = "all of the data" if finding.part == "all" and several else finding.part
    where = [word for word in (part, finding.reading) if word != "all"]
    return f"{words}: {', '.join(where)}" if where else words
