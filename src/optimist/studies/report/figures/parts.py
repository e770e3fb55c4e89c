"""Figure 6: a row for each agent, a panel for each game, a curve for each part of the data."""

from matplotlib.figure import Figure

from optimist.studies.report.figures import StudyFigure
from optimist.studies.report.figures.curves import ACROSS, SMOOTHED, curve_grid
from optimist.studies.results.findings import StudyResults, short_names
from optimist.studies.scores.finding import Finding

IN_A_ROW = 5  # games up to which each agent has a row of its own


def draw(study: StudyResults, finding: Finding) -> Figure | None:
    longest = {each.part: each for each in study.longest}
    first, *others = (each.file.games for each in longest.values())
    games = [game for game in first if all(game in each for each in others)]
    if not games:
        return None
    by, short, (_, one) = study.by, short_names(games), study.ends(games)
    panels = {
        f"{agent}, {short[game]}": {
            part: {
                seed: {step: by.normalised(game, score) for step, score in curve.items()}
                for seed, curve in each.file.agents[agent][game].items()
            }
            for part, each in longest.items()
            if agent in each.file.agents
        }
        for agent in study.agents
        for game in games
        if any(agent in each.file.agents for each in longest.values())
    }
    return curve_grid(
        panels,
        {panel: {f"1 is {one}": 1.0} for panel in panels},
        xlabel=study.unit,
        ylabel="normalised score",
        columns=len(games) if len(games) <= IN_A_ROW else ACROSS,
        traces=False,
    )


FIGURE = StudyFigure(
    title="Scores with each part of the data (Figure 6)",
    caption=f"{SMOOTHED}. Each colour is a part of the data.",
    draw=draw,
    needs="no game is finished on every part of the data",
    of="study",
)
