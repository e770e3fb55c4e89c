"""Chooses and draws the figures of a study from its results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from optimist import envs
from optimist.studies.folders import folder_names
from optimist.studies.report import figures, interval_figures, paper_figures
from optimist.studies.report.paper_figures import MANY
from optimist.studies.results.findings import Finding, StudyResults
from optimist.studies.scores import intervals
from optimist.studies.scores.normalisation import better_curve, median_curve, seed_means, seed_medians
from optimist.studies.scores.score_files import Seeds
from optimist.studies.scores.table_one import MAIN, kind_title

OPENING = ("intervals", "iqm", "curves")  # the page of every study begins with these
USUAL = ("medians", "profiles")  # also drawn if the study names no figures
ACROSS = 3  # panels in a row of a page; four if there are many, which are small


@dataclass(frozen=True)
class Drawn:
    """A figure in the page, and on disk if it is written there."""

    name: str  # its kind, one of study_file.FIGURES
    path: Path
    title: str
    caption: str
    svg: str
    inches: float  # its width


def draw(findings: StudyResults, *, are_files: bool = True) -> tuple[list[Drawn], list[str]]:
    """Draw every figure of the study; return them and the reasons why others are left out."""
    drawn: list[Drawn] = []
    left_out = []
    for name in named(findings):
        before = len(drawn)
        for place, title, caption, figure in drawings(findings, name):
            path = findings.out / "results" / f"{place}.png"
            laid_out = figures.laid_out(figure)
            if are_files:
                figures.save_png(laid_out, path)
            drawn.append(Drawn(name, path, title, caption, figures.svg(figure), figure.get_figwidth()))
        if len(drawn) == before:
            left_out.append(f'the figure "{name}" is left out: {_NEEDS[name]}')
    return drawn, left_out


def named(findings: StudyResults) -> tuple[str, ...]:
    """The figures to draw: the opening ones, then those of the study's file or the usual ones."""
    several = len({finding.part for finding in findings.found}) > 1
    others = findings.record.figures or (*USUAL, *(("parts",) if several else ()))
    return (*OPENING, *(name for name in others if name not in OPENING))


ONE_POINT = "there is one evaluation, and its scores are in the tables"
_NEEDS = {  # why a figure may be left out
    **dict.fromkeys(("iqm", "curves", "medians"), ONE_POINT),
    "bars": "it compares games, and there is only one",
    "spread": "it needs the logs, and their complete episodes",
    "parts": "no game is finished on every part of the data",
}

Drawing = tuple[str, str, str, Figure]  # path below `results`, title, caption, figure


def drawings(findings: StudyResults, name: str) -> list[Drawing]:
    """The figures of one kind: of the longest reading of each part, or of every reading."""
    if name == "parts":
        return _parts(findings)
    if name == "bars":
        return _bars(findings)
    draw_one, words, caption = _DRAWINGS[name]
    found = findings.found if name == "profiles" else findings.longest
    figures_of = [(finding, draw_one(findings, finding)) for finding in found]
    return [
        (f"{finding.name}/{name}", title_of(words, findings, finding), caption, figure)
        for finding, figure in figures_of
        if figure
    ]


def _intervals(findings: StudyResults, finding: Finding) -> Figure:
    _, one = findings.ends(finding.file.games)
    return interval_figures.interval_plot(finding.certainty, finding.evaluations, one)


def _iqm(findings: StudyResults, finding: Finding) -> Figure | None:
    if finding.evaluations == 1:
        return None
    curves, (zero, one) = findings.on_the_way[finding.name], findings.ends(finding.file.games)
    return interval_figures.iqm_over_training(curves, zero, one, steps(findings))


def _medians(findings: StudyResults, finding: Finding) -> Figure | None:
    if finding.evaluations == 1:
        return None
    agents = finding.file.agents
    means = {agent: seed_means(by_game) for agent, by_game in agents.items()}
    return paper_figures.medians(
        {agent: median_curve(curves, findings.by) for agent, curves in means.items()},
        {agent: seed_medians(by_game, findings.by) for agent, by_game in agents.items()},
        {agent: better_curve(curves, findings.by) for agent, curves in means.items()},
        yardstick=findings.by.yardstick,
        one=findings.ends(finding.file.games)[1],
        games=len(finding.file.games),
        xlabel=steps(findings),
    )


def _curves(findings: StudyResults, finding: Finding) -> Figure | None:
    if finding.evaluations == 1:
        return None
    games = finding.file.games
    return paper_figures.curve_grid(
        _panels(finding, games),
        {short: levels(findings, finding.part, game) for game, short in short_names(games).items()},
        xlabel=steps(findings),
        columns=4 if len(games) >= MANY else min(len(games), ACROSS),
        traces=len(games) < MANY,
    )


def _spread(findings: StudyResults, finding: Finding) -> Figure | None:
    """Figure 8: every evaluation without smoothing, for the games with logs."""
    means = {
        game: log.average[finding.part] for game, log in findings.logs.items() if finding.part in log.average
    }
    games = [game for game in finding.file.games if game in means]
    if not games:
        return None
    return paper_figures.curve_grid(
        _panels(finding, games),
        {short: {"mean of the data": means[game]} for game, short in short_names(games).items()},
        window=1,
        xlabel=steps(findings),
        traces=False,
    )


def _profiles(findings: StudyResults, finding: Finding) -> Figure:
    found = intervals.profiles(finding.scores)
    shown = {kind_title(kind, finding.evaluations): found[kind] for kind in MAIN if kind in found}
    return interval_figures.profiles(shown)


_SMOOTHED = f"Mean over seeds and one deviation around it, smoothed over {paper_figures.WINDOW} evaluations"
_DRAWINGS: dict[str, tuple[Callable[[StudyResults, Finding], Figure | None], str, str]] = {
    "intervals": (
        _intervals,
        "Interquartile mean of each agent",
        "Dots are interquartile means over games and seeds, bars 95% bootstrap intervals. Best is "
        "chosen with the scores that it reports, so it is too high; cross-chosen best scores each seed at "
        "the evaluation that is best for the other seeds. Chosen offline, if it is shown, scores each "
        "seed at the evaluation that optimist select chose by its log.",
    ),
    "iqm": (
        _iqm,
        "Interquartile mean during training",
        "Interquartile mean over games and seeds at each evaluation, with pointwise 95% bands.",
    ),
    "curves": (
        _curves,
        "Learning curves (Figures 3 and 7)",
        f"{_SMOOTHED}. The horizontal lines are returns in the data, and random play.",
    ),
    "medians": (
        _medians,
        "Median normalised score (Figure 1)",
        "Thick lines: the median over games of the mean over seeds; thin lines: the median of each seed.",
    ),
    "spread": (
        _spread,
        "Returns against the data's (Figure 8)",
        "Mean over runs and one standard deviation; the black line is the mean return in the data.",
    ),
    "profiles": (
        _profiles,
        "Performance profiles",
        "The share of runs on all games above each score, with pointwise 95% bootstrap bands.",
    ),
}


def _bars(findings: StudyResults) -> list[Drawing]:
    """Figure 4 for every agent and reading with several games."""
    drawn, folders = [], folder_names(findings.agents)
    for finding in (each for each in findings.found if len(each.file.games) > 1):
        titles = {kind: kind_title(kind, finding.evaluations) for kind in ("best", "last", "mean_of_last")}
        for agent, games in finding.games.items():
            short = short_names([row.game for row in games])
            best, *marks = (
                {short[row.game]: getattr(row.improvement, kind) for row in games} for kind in titles
            )
            figure = paper_figures.improvement_bars(
                best,
                title=agent,
                yardstick=findings.ends(finding.file.games)[1],
                bars=titles["best"],
                marks=dict(zip(list(titles.values())[1:], marks, strict=True)),
            )
            title = title_of(f"{agent}: improvement per game (Figure 4)", findings, finding)
            caption = "Mean over seeds, normalised. The axis is linear up to 10% and logarithmic beyond."
            drawn.append((f"{finding.name}/bars-{folders[agent]}", title, caption, figure))
    return drawn


def _parts(findings: StudyResults) -> list[Drawing]:
    """Figure 6: a row per agent, a panel per game, a curve per part of the data."""
    longest = {finding.part: finding for finding in findings.longest}
    first, *others = (finding.file.games for finding in longest.values())
    games = [game for game in first if all(game in each for each in others)]
    if not games:
        return []
    by, short, (_, one) = findings.by, short_names(games), findings.ends(games)
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
        {panel: {one: 1.0} for panel in panels},
        xlabel=steps(findings),
        ylabel="normalised score",
        columns=len(games) if len(games) <= 5 else ACROSS,
        traces=False,
    )
    caption = f"{_SMOOTHED}; 1 is {one}. Each colour is a part of the data."
    return [("parts", "Scores with each part of the data (Figure 6)", caption, figure)]


def _panels(finding: Finding, games: Sequence[str]) -> dict[str, dict[str, Seeds]]:
    """The curves by short name of the game and by agent."""
    agents = finding.file.agents.items()
    return {
        short: {agent: by_game[game] for agent, by_game in agents}
        for game, short in short_names(games).items()
    }


def short_names(games: Sequence[str]) -> dict[str, str]:
    """ "Breakout" for "atari/Breakout", if all games are of one family."""
    short = {game: envs.game_of(game) for game in games}
    one = len({game.removesuffix(short[game]) for game in games}) == 1
    return {game: short[game] if one and short[game] else game for game in games}


def steps(findings: StudyResults) -> str:
    """The unit of the x axis."""
    return "gradient updates" if findings.offline else "steps played"


def levels(findings: StudyResults, part: str, game: str) -> dict[str, float]:
    """Horizontal lines: the paper's two, if the log exists, and random play."""
    lines = {}
    if game in findings.logs and part in findings.logs[game].best:
        lines = {
            "best policy in the data": findings.logs[game].best[part],
            "average behaviour": findings.logs[game].average[part],
        }
    return {**lines, "random play": findings.by.random_scores[game]}


def title_of(words: str, findings: StudyResults, finding: Finding) -> str:
    """The title, with the part and the reading if the study has several."""
    several = len({other.part for other in findings.found}) > 1
    part = "all of the data" if finding.part == "all" and several else finding.part
    where = [word for word in (part, finding.reading) if word != "all"]
    return f"{words}: {', '.join(where)}" if where else words
