"""Tables and figures of a study, as a study's report has them, from published scores."""

import json
import re
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from optimist.studies.report.figures import intervals as interval_figure
from optimist.studies.report.figures import iqm as iqm_figure
from optimist.studies.report.figures import medians as medians_figure
from optimist.studies.report.figures.curves import ACROSS, curve_grid
from optimist.studies.results.findings import short_names
from optimist.studies.scores import intervals
from optimist.studies.scores.curves import ScoreFile, read_scores
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.normalisation import from_csv
from optimist.studies.sheet import records_csv
from results.library.scores import RESULTS

OFFLINE = "gradient updates"


def first_evaluations(path: str, count: int | None = None) -> ScoreFile:
    """The first evaluations of every run of a file below results, which may be compressed."""
    file = RESULTS / path
    whole = read_scores(file if file.exists() else file.with_name(f"{file.name}.gz"))
    agents = {
        agent: {
            game: {
                seed: {step: curve[step] for step in sorted(curve)[:count]} for seed, curve in seeds.items()
            }
            for game, seeds in games.items()
        }
        for agent, games in whole.agents.items()
    }
    return ScoreFile(agents, whole.axis)


def tables_of(
    folder: str, start: str = "", name: str = "scores.csv", *, evaluations: int, paired: bool = True
) -> dict[str, Callable[[], str]]:
    """The tables of a study that its page has, read after so many evaluations; `start` begins their names."""

    def finding() -> Finding:
        by = from_csv(RESULTS / folder / "normaliser.csv")
        return Finding(first_evaluations(f"{folder}/{name}", evaluations), by, paired=paired)

    tables = {
        "aggregates": lambda: finding().certainty,
        "pairs": lambda: intervals.pairs(finding().scores),
        "table": lambda: finding().rows,
        "per_game": lambda: finding().game_rows,
    }
    return {
        f"{start}{table}.csv": lambda rows=rows: rounded(records_csv(rows()))
        for table, rows in tables.items()
        if (RESULTS / folder / f"{start}{table}.csv").exists()
    }


def rounded(text: str) -> str:
    """Six decimals, so that another machine writes the same file."""
    return re.sub(r"-?\d+\.\d{7,}(e-\d+)?", lambda number: f"{float(number[0]):.6f}", text)


class Study:
    """The scores of a page, normalised by its players, and the figures of a report."""

    def __init__(
        self, folder: str, name: str = "scores.csv", agents: Sequence[str] = (), without: Sequence[str] = ()
    ):
        whole = first_evaluations(f"{folder}/{name}")
        kept = agents or [agent for agent in whole.agents if agent not in without]
        self.file = ScoreFile({agent: whole.agents[agent] for agent in kept}, whole.axis)
        logs = RESULTS / folder / "logs.json"
        self.logs = json.loads(logs.read_text()) if logs.exists() else {}
        self.by = from_csv(RESULTS / folder / "normaliser.csv")

    def intervals(self) -> Figure:
        rows = intervals.rows(intervals.matrices(self.file, self.by))
        curves = next(iter(next(iter(self.file.agents.values())).values()))
        return interval_figure.interval_plot(rows, len(next(iter(curves.values()))), self.by.yardstick)

    def iqm(self) -> Figure:
        curves = intervals.over_training(self.file, self.by)
        return iqm_figure.iqm_over_training(curves, "random play", self.by.yardstick, OFFLINE)

    def medians(self, xlabel: str = OFFLINE) -> Figure:
        return medians_figure.medians(
            {agent: intervals.medians(games, self.by) for agent, games in self.file.agents.items()},
            yardstick=self.by.yardstick,
            one=self.by.yardstick,
            games=len(self.file.games),
            xlabel=xlabel,
        )

    def curves(self, xlabel: str = OFFLINE) -> Figure:
        names = short_names(self.file.games)
        panels = {
            short: {agent: games[game] for agent, games in self.file.agents.items()}
            for game, short in names.items()
        }
        levels = {short: self._levels(game) for game, short in names.items()}
        return curve_grid(panels, levels, xlabel=xlabel, columns=min(len(names), ACROSS))

    def _levels(self, game: str) -> dict[str, float]:
        """The returns in the log, and random play."""
        log, lines = self.logs.get(game, {}), {}
        if log.get("best"):
            lines = {
                "best policy in the data": log["best"]["all"],
                "average behaviour": log["average"]["all"],
            }
        return {**lines, "random play": self.by.random_scores[game]}
