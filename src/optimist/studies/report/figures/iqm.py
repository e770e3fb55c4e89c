"""The interquartile mean over games and seeds at each evaluation."""

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from optimist.studies.report.drawing import Line, chart
from optimist.studies.report.figures import ONE_POINT, StudyFigure
from optimist.studies.results.findings import StudyResults
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.statistics import Interval

WORDS = 72  # letters in a line of the axis


def draw(study: StudyResults, finding: Finding) -> Figure | None:
    if finding.evaluations == 1:
        return None
    zero, one = study.ends(finding.file.games)
    return iqm_over_training(study.on_the_way[finding.name], zero, one, study.unit)


def iqm_over_training(
    curves: Mapping[str, tuple[Sequence[int], Interval]], zero: str, one: str, xlabel: str
) -> Figure:
    """A line for each agent with a pointwise 95% band."""
    lines = {
        agent: Line(steps, sure.estimate, band=(sure.low, sure.high))
        for agent, (steps, sure) in curves.items()
    }
    ylabel = textwrap.fill(f"interquartile mean; 1 is {one}, 0 {zero}", WORDS)
    return chart(lines, xlabel=xlabel, ylabel=ylabel, size=(8.2, 5.0), levels={one: 1.0})


FIGURE = StudyFigure(
    title="Interquartile mean during training",
    caption="Interquartile mean over games and seeds at each evaluation, with pointwise 95% bands.",
    draw=draw,
    needs=ONE_POINT,
)
