"""Draw the figures of the studies' pages again, from their scores alone.

    python docs/results/redraw.py asymptotic again   # the page, and the folder for its figures

Figures that have a script of their own (such as `exploration/share.py`) are not drawn here.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from command import call, refuse
from matplotlib.figure import Figure
from recompute import read
from resampling import RESULTS

from optimist.studies.report import figures, interval_figures, paper_figures
from optimist.studies.report.study_figures import ACROSS, short_names
from optimist.studies.scores import intervals, normalisation
from optimist.studies.scores.normalisation import from_csv
from optimist.studies.scores.score_files import ScoreFile

ALL = 10_000  # evaluations; more than any run has
OFFLINE, ONLINE = "gradient updates", "steps played"
EPSILON = [
    "DQN (Adam)",
    "DQN (Adam), epsilon x 10",
    "REM, head epsilon / 200",
    "Averaged, head epsilon / 200",
    "REM",
]
SLOW = ("DQN (Adam), rate / 5", "REM, rate / 5")


PAGES = (
    *("agents", "asymptotic", "atari", "epsilon-and-heads", "final-buffer"),
    *("growing-the-log", "multi-network", "online", "small-scale", "ten-times-the-log"),
)


class Study:
    """The scores of a page, normalised by its players."""

    def __init__(self, folder: str, name: str = "scores.csv", agents: list[str] | None = None, without=()):
        place = RESULTS / folder
        whole = read(place / name, ALL)
        kept = agents or [agent for agent in whole.agents if agent not in without]
        self.file = ScoreFile({agent: whole.agents[agent] for agent in kept}, whole.axis)
        self.logs = json.loads((place / "logs.json").read_text()) if (place / "logs.json").exists() else {}
        self.limits = place / "normaliser.csv"

    @property
    def by(self) -> normalisation.Normaliser:
        return from_csv(self.limits)

    def intervals(self) -> Figure:
        found = intervals.rows(intervals.matrices(self.file, self.by))
        curves = next(iter(next(iter(self.file.agents.values())).values()))
        return interval_figures.interval_plot(found, len(next(iter(curves.values()))), self.by.yardstick)

    def iqm(self) -> Figure:
        found = intervals.over_training(self.file, self.by)
        return interval_figures.iqm_over_training(found, "random play", self.by.yardstick, OFFLINE)

    def medians(self, xlabel: str = OFFLINE) -> Figure:
        agents = self.file.agents
        means = {agent: normalisation.seed_means(games) for agent, games in agents.items()}
        return paper_figures.medians(
            {agent: normalisation.median_curve(curves, self.by) for agent, curves in means.items()},
            {agent: normalisation.seed_medians(games, self.by) for agent, games in agents.items()},
            {agent: normalisation.better_curve(curves, self.by) for agent, curves in means.items()},
            yardstick=self.by.yardstick,
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
        return paper_figures.curve_grid(panels, levels, xlabel=xlabel, columns=min(len(names), ACROSS))

    def _levels(self, game: str) -> dict[str, float]:
        """The returns in the log, and random play."""
        log, lines = self.logs.get(game, {}), {}
        if log.get("best"):
            lines = {
                "best policy in the data": log["best"]["all"],
                "average behaviour": log["average"]["all"],
            }
        return {**lines, "random play": self.by.random_scores[game]}


def final_buffer() -> Figure:
    """Figure 8: every evaluation, and the mean return of the episodes in the logs."""
    file = read(RESULTS / "final-buffer/scores.csv", ALL)
    logs = json.loads((RESULTS / "final-buffer/players.json").read_text())["logs"]
    (game,) = file.games
    panels = {"HalfCheetah": {agent: games[game] for agent, games in file.agents.items()}}
    levels = {"HalfCheetah": {"mean of the data": logs[game]["average"]["all"]}}
    return paper_figures.curve_grid(panels, levels, window=1, xlabel=OFFLINE, traces=False)


OFFLINE_AGENTS = {  # six of the agents of the page `agents`
    "dqn-nature": "DQN (Nature)",
    "qr_dqn": "QR-DQN",
    "rem": "REM",
    "c51": "C51",
    "ensemble_dqn": "Ensemble-DQN",
    "behaviour_cloning": "cloning",
}
ONLINE_AGENTS = {
    "dqn": "DQN (Nature)",
    "c51": "C51",
    "qr_dqn": "QR-DQN",
    "bootstrapped_dqn": "Bootstrapped-DQN",
    "rem": "REM",
}
PONG = {"qr_dqn": "QR-DQN", "dqn_nature": "DQN (Nature)", "dqn_adam": "DQN (Adam)", "rem": "REM"}


def rows(path: Path) -> list[dict[str, str]]:
    with open(path) as file:
        return list(csv.DictReader(file))


def one_game(title: str, agents: dict[str, list[dict]], column: str, log: Path | None, xlabel: str) -> Figure:
    """Curves without smoothing, of rows by agent, and the returns in the log."""
    curves: dict = {agent: {} for agent in agents}
    for agent, mine in agents.items():
        for row in mine:
            curve = curves[agent].setdefault(int(row["seed"]), {})
            curve.setdefault(int(row["step"]), []).append(float(row[column]))
        for curve in curves[agent].values():
            curve.update({step: float(np.mean(each)) for step, each in curve.items()})
        if not log:  # online, the seeds are read at different steps
            curves[agent] = {seed: at_equal_steps(curve) for seed, curve in curves[agent].items()}
    known = json.loads(log.read_text()) if log else {}
    levels = {"best policy in the data": "best_policy_return", "average behaviour": "return_mean"}
    lines = {label: known[name] for label, name in levels.items() if known}
    return paper_figures.curve_grid({title: curves}, {title: lines}, window=1, xlabel=xlabel)


def at_equal_steps(curve: dict[int, float], every: int = 5_000) -> dict[int, float]:
    steps = sorted(curve)
    places = range(2 * every, steps[-1] + 1, every)
    return {at: float(np.interp(at, steps, [curve[step] for step in steps])) for at in places}


def agents_of(path: Path, names: dict[str, str]) -> dict[str, list[dict]]:
    return {label: [row for row in rows(path) if row["agent"] == name] for name, label in names.items()}


def tenths_of_the_log(log: Path) -> Figure:
    returns = json.loads(log.read_text())["return_per_tenth"]
    figure = Figure(figsize=(7.2, 2.4), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(range(1, 11), returns, width=0.72, color=figures.COLOURS[0])
    figures.dress(axes, xlabel="tenth of the logged experience", ylabel="mean return", ticks=10)
    return figure


def rounds() -> Figure:
    played = rows(RESULTS / "growing-the-log/returns.csv")
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot(xlabel="rounds of growth, 2,000 steps each", ylabel="mean return of the policy")
    for way, colour in {"its own policy": "C0", "random play": "C1"}.items():
        returns = np.array([float(row["return"]) for row in played if row["grown_by"] == way]).reshape(-1, 4)
        axes.plot(returns.T, color=colour, alpha=0.3, linewidth=1)
        axes.plot(returns.mean(axis=0), color=colour, label=f"the log grows by {way}")
    axes.set_xticks(range(4))
    axes.legend(frameon=False)
    return figure


def pictures(page: str) -> dict[str, Figure]:
    """The figures of a page by the names of their files."""
    place = RESULTS / page
    if page == "final-buffer":
        return {"figure8": final_buffer()}
    if page == "agents":
        known = (
            agents_of(place / "offline.csv", OFFLINE_AGENTS),
            agents_of(place / "online.csv", ONLINE_AGENTS),
        )
        offline = one_game("offline", known[0], "average_return", place / "log.json", OFFLINE)
        return {"offline": offline, "online": one_game("online", known[1], "recent_return", None, ONLINE)}
    if page == "atari":
        known = {label: rows(place / f"{name}.csv") for name, label in PONG.items()}
        offline = one_game("Pong", known, "return", place / "log.json", OFFLINE)
        return {"log": tenths_of_the_log(place / "log.json"), "offline": offline}
    if page == "growing-the-log":
        return {"rounds": rounds()}
    if page == "multi-network":
        two, more = Study(page, "scores-2x.csv"), Study(page, "scores-2.5x.csv")
        drawn = {"2x-intervals": two.intervals(), "2.5x-intervals": more.intervals(), "iqm": two.iqm()}
        return {**drawn, "medians": more.medians(), "curves": more.curves()}
    if page == "online":
        study = Study(page)
        return {"medians": study.medians(ONLINE), "curves": study.curves(ONLINE)}
    if page == "epsilon-and-heads":
        study, first = Study(page), Study(page, without=SLOW)
        drawn = {"epsilon": Study(page, agents=EPSILON).iqm(), "iqm": study.iqm()}
        return {**drawn, "intervals": study.intervals(), "curves": first.curves()}
    study = Study(page)
    if page == "ten-times-the-log":
        return {"curves": study.curves()}
    drawn = {"intervals": study.intervals(), "iqm": study.iqm()}
    return drawn if page == "small-scale" else {**drawn, "medians": study.medians(), "curves": study.curves()}


def main(page: str, out: Path) -> None:
    if page not in PAGES:
        refuse(f"no figures of {page}: the pages are {', '.join(PAGES)}")
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in pictures(page).items():
        figures.save_png(figures.laid_out(figure), out / f"{name}.png")
        print(out / f"{name}.png")


if __name__ == "__main__":
    call(__doc__, main)
