"""The CSVs and the figure of this page, from an experiment's folder or from its scores.

    python docs/results/large-batches/table.py gather FOLDER docs/results/large-batches/scores.csv
    python docs/results/large-batches/table.py table docs/results/large-batches
    python docs/results/large-batches/table.py draw docs/results/large-batches  # needs optimist

Seconds are those of one seed alone on the device: updates, divided by the rate of that batch size in
rates.csv; a batch size that is not there has no seconds. Cross-chosen best: each run at the evaluation that
is best for the mean of the other runs of its game and arm. Mean in the same seconds: of the evaluations in
the seconds that both the arm and the batch of 32 have. Differences from the batch of 32 are paired by log,
with Student's 95% interval; the scores at the cross-chosen best depend on each other, so its interval is too
narrow. `all` is relative to the mean of the batch of 32 in each MinAtar game.
"""

import csv
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call
from resampling import student

USUAL = (32, "plain")
LOWEST = {"pong": -21.0}  # the lowest score, where it is not 0
SCALES = {"pong": "atari"}  # the rows of rates.csv, where they are not those of mini
Arm = tuple[int, str]  # batch size and rule


def gather(folder: str, scores: str) -> None:
    found: dict = defaultdict(list)
    for path in sorted(Path(folder).glob("*-*-*/episodes.csv")):
        game, batch, rule = path.parent.name.split("-", 2)
        with path.open() as file:
            for row in csv.DictReader(file):
                found[game, int(batch), rule, int(row["seed"]), int(row["step"])].append(float(row["return"]))
    rows = [[*run, f"{statistics.mean(each):.4f}"] for run, each in sorted(found.items())]
    heads, kept = ["game", "batch", "rule", "seed", "step", "score"], []
    if Path(scores).exists():
        new = {game for game, *_ in found}
        with Path(scores).open() as file:
            kept = [row for row in list(csv.reader(file))[1:] if row[0] not in new]
    with Path(scores).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([heads, *kept, *rows])


def read(folder: Path) -> dict[str, dict[Arm, tuple[np.ndarray, np.ndarray]]]:
    """{game: {arm: (steps, scores of each seed and step)}}: the evaluations that all seeds have, without one
    at the end of a run that follows the one before at once."""
    found: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with (folder / "scores.csv").open() as file:
        for row in csv.DictReader(file):
            runs = found[row["game"]][int(row["batch"]), row["rule"]]
            runs[int(row["seed"])][int(row["step"])] = float(row["score"])
    curves: dict = defaultdict(dict)
    for game, arms in found.items():
        for arm, seeds in sorted(arms.items()):
            steps = sorted(set.intersection(*(set(curve) for curve in seeds.values())))
            steps = [step for step in steps if step % steps[0] == 0]
            scores = [[curve[step] for step in steps] for _, curve in sorted(seeds.items())]
            curves[game][arm] = np.array(steps), np.array(scores)
    return curves


def rates(folder: Path) -> dict[tuple[str, int], float]:
    """Updates per second by scale and batch size."""
    with (folder / "rates.csv").open() as file:
        return {
            (row["scale"], int(row["batch"])): float(row["updates_per_second"])
            for row in csv.DictReader(file)
        }


def seconds(game: str, batch: int, updates, rate: dict[tuple[str, int], float]):
    """How long one seed alone takes for so many updates; NaN if that was not timed."""
    return updates / rate.get((SCALES.get(game, "mini"), batch), np.nan)


def chosen(scores: np.ndarray) -> np.ndarray:
    """The evaluation of each run that is best for the others."""
    return np.array([np.delete(scores, run, 0).mean(0).argmax() for run in range(len(scores))])


def at_best(scores: np.ndarray) -> np.ndarray:
    """The score of each run at the evaluation that is best for the others."""
    return scores[np.arange(len(scores)), chosen(scores)]


def bounds(values: np.ndarray) -> list[str]:
    return [f"{value:.3f}" for value in student(values)]


def table(folder: Path) -> None:
    """For each arm: its measures, when its best is reached, and when its mean curve first has nine tenths of
    what the batch of 32 has at best."""
    curves, rate = read(folder), rates(folder)
    heads = ["game", "batch", "rule", "evaluated_to", "measure", "score", "seconds", "seconds_to_90_percent"]
    with (folder / "table.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*heads, "difference", "low", "high"])
        relative: dict = defaultdict(list)
        for game, arms in curves.items():
            usual_steps, usual = arms[USUAL]
            usual_times = seconds(game, USUAL[0], usual_steps, rate)
            lowest = LOWEST.get(game, 0.0)
            enough = lowest + 0.9 * (usual.mean(0).max() - lowest)
            for arm, (steps, scores) in arms.items():
                times = seconds(game, arm[0], steps, rate)
                reached = scores.mean(0) >= enough
                soonest = _two_digits(times[reached.argmax()]) if reached.any() else ""
                measures = {
                    "cross-chosen best": (at_best(scores), at_best(usual), times[chosen(scores)].mean()),
                    "mean of all": (scores.mean(1), usual.mean(1), times[-1]),
                }
                if not np.isnan(times[-1]):
                    last = min(times[-1], usual_times[-1])
                    means = scores[:, times <= last].mean(1), usual[:, usual_times <= last].mean(1)
                    measures["mean in the same seconds"] = (*means, last)
                for measure, (score, usual_score, at) in measures.items():
                    difference = score - usual_score
                    if game not in SCALES:
                        relative[arm, measure].append(difference / usual_score.mean())
                    row = [game, *arm, steps[-1], measure, f"{score.mean():.3f}", _two_digits(at), soonest]
                    out.writerow([*row, *bounds(difference)])
        for (arm, measure), each in relative.items():
            values = np.concatenate(each)
            out.writerow(["all", *arm, "", measure, "", "", "", *bounds(values)])


def _two_digits(time: float) -> str:
    return "" if np.isnan(time) else f"{time:.2f}"


def _label(batch: int, rule: str) -> str:
    like = rule.partition("@")[2]
    return f"batch {batch:,}" + f", rate and period of {like}" * bool(like)


def draw(folder: Path) -> None:
    """The mean over logs against the seconds of one seed alone; a panel for each game and rule."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    from optimist.studies.report import figures

    curves, rate = read(folder), rates(folder)
    titles = {
        "plain": "rate and period as with 32",
        "root": "rate x sqrt(k), period / k",
        "root-epsilon": "and epsilon / sqrt(k)",
        "linear": "rate x k, period / k",
    }
    figure = Figure(figsize=(11, 2.7 * len(curves)), layout="constrained")
    panels = figure.subplots(len(curves), len(titles), sharex="row", sharey="row", squeeze=False)
    for line, (game, arms) in enumerate(curves.items()):
        for column, (rule, title) in enumerate(titles.items()):
            axes = panels[line, column]
            timed = [arm for arm in arms if (SCALES.get(game, "mini"), arm[0]) in rate]
            shown = [USUAL, *(arm for arm in timed if arm[1].split("@")[0] == rule and arm != USUAL)]
            for arm, colour in zip(shown, figures.COLOURS, strict=False):
                steps, scores = arms[arm]
                at = seconds(game, arm[0], steps, rate)
                axes.plot(at, scores.mean(0), color=colour, label=_label(*arm))
            axes.set_visible(shown != [USUAL])
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
            if line == 0:
                axes.set_title(title, fontsize=10)
            if column == 0:
                axes.set_ylabel(f"{game}: mean return")
            if line == len(curves) - 1:
                axes.set_xlabel("seconds of one seed alone")
            if line == 0 and column == 0:
                axes.legend(frameon=False, fontsize=8)
    figures.save_png(figures.laid_out(figure), folder / "curves.png")


if __name__ == "__main__":
    call(__doc__, gather=gather, table=table, draw=draw)
