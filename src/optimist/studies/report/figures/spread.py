"""Figure 8: every evaluation without smoothing, beside the mean of the data."""

from matplotlib.figure import Figure

from optimist.studies.report.figures import StudyFigure
from optimist.studies.report.figures.curves import ACROSS, by_panel, curve_grid
from optimist.studies.results.findings import StudyResults, short_names
from optimist.studies.scores.finding import Finding


def draw(study: StudyResults, finding: Finding) -> Figure | None:
    """The games with logs."""
    means = {
        game: log.average[finding.part] for game, log in study.logs.items() if finding.part in log.average
    }
    games = [game for game in finding.file.games if game in means]
    if not games:
        return None
    return curve_grid(
        by_panel(finding, games),
        {short: {"mean of the data": means[game]} for game, short in short_names(games).items()},
        window=1,
        xlabel=study.unit,
        columns=min(len(games), ACROSS),
        traces=False,
    )


FIGURE = StudyFigure(
    title="Returns against the data's (Figure 8)",
    caption="Mean over runs and one standard deviation; the black line is the mean return in the data.",
    draw=draw,
    needs="it needs the logs, and their complete episodes",
)
