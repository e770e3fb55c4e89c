"""Large batches: the table, how sure its times are, and the figure.

Seconds are those of one seed alone on the device: updates, divided by the rate of that batch size in
rates.csv; a batch size that is not there has no seconds. Cross-chosen best: each run at the evaluation that
is best for the mean of the other runs of its game and arm. Mean in the same seconds: of the evaluations in
the seconds that both the arm and the batch of 32 have. Differences from the batch of 32 are paired by log,
with Student's 95% interval; the scores at the cross-chosen best depend on each other, so its interval is too
narrow. `all` is relative to the mean of the batch of 32 in each MinAtar game.
"""

from collections import defaultdict
from itertools import product

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from results.library.scores import read, student

from optimist.studies.report import drawing

USUAL = (32, "plain")
LOWEST = {"pong": -21.0}  # the lowest score, where it is not 0
SCALES = {"pong": "atari"}  # the rows of rates.csv, where they are not those of mini
Arm = tuple[int, str]  # batch size and rule
ARM = (256, "root")  # whose times are drawn again
SHARES = (0.7, 0.8, 0.9, 1.0)
HEADS = ["game", "batch", "rule", "evaluated_to", "measure", "score", "seconds", "seconds_to_90_percent"]
HEADS += ["difference", "low", "high"]
DRAW_HEADS = ["game", "batch", "rule", "share_of_best", "relative_time", "draws", "sooner", "never"]


def curves_of() -> dict[str, dict[Arm, tuple[np.ndarray, np.ndarray]]]:
    """{game: {arm: (steps, scores of each seed and step)}}: the evaluations that all seeds have, without one
    at the end of a run that follows the one before at once."""
    found: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for row in read("large-batches/scores.csv"):
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


def rates() -> dict[tuple[str, int], float]:
    """Updates per second by scale and batch size."""
    rows = read("large-batches/rates.csv")
    return {(row["scale"], int(row["batch"])): float(row["updates_per_second"]) for row in rows}


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


def table():
    """For each arm: its measures, when its best is reached, and when its mean curve first has nine tenths of
    what the batch of 32 has at best."""
    rate, relative = rates(), defaultdict(list)
    yield HEADS
    for game, arms in curves_of().items():
        usual_steps, usual = arms[USUAL]
        usual_times = seconds(game, USUAL[0], usual_steps, rate)
        lowest = LOWEST.get(game, 0.0)
        enough = lowest + 0.9 * (usual.mean(0).max() - lowest)
        for arm, (steps, scores) in arms.items():
            times = seconds(game, arm[0], steps, rate)
            reached = scores.mean(0) >= enough
            soonest = _two_digits(times[reached.argmax()]) if reached.any() else ""
            for measure, (score, usual_score, at) in _measures(scores, times, usual, usual_times).items():
                difference = score - usual_score
                if game not in SCALES:
                    relative[arm, measure].append(difference / usual_score.mean())
                row = [game, *arm, steps[-1], measure, f"{score.mean():.3f}", _two_digits(at), soonest]
                yield [*row, *bounds(difference)]
    for (arm, measure), each in relative.items():
        yield ["all", *arm, "", measure, "", "", "", *bounds(np.concatenate(each))]


def _measures(scores, times, usual, usual_times) -> dict[str, tuple]:
    """Scores of an arm and of the batch of 32, and seconds."""
    measures = {
        "cross-chosen best": (at_best(scores), at_best(usual), times[chosen(scores)].mean()),
        "mean of all": (scores.mean(1), usual.mean(1), times[-1]),
    }
    if not np.isnan(times[-1]):
        last = min(times[-1], usual_times[-1])
        means = scores[:, times <= last].mean(1), usual[:, usual_times <= last].mean(1)
        measures["mean in the same seconds"] = (*means, last)
    return measures


def _two_digits(time: float) -> str:
    return "" if np.isnan(time) else f"{time:.2f}"


def _label(batch: int, rule: str) -> str:
    like = rule.partition("@")[2]
    return f"batch {batch:,}" + f", rate and period of {like}" * bool(like)


def first_time(times: np.ndarray, curve: np.ndarray, enough: float) -> float:
    """Infinite if the curve is never there."""
    reached = curve >= enough
    return times[reached.argmax()] if reached.any() else np.inf


def lines_of(game: str, arms: dict, rate: dict[tuple[str, int], float]):
    (steps, scores), (usual_steps, usual) = arms[ARM], arms[USUAL]
    times, usual_times = seconds(game, ARM[0], steps, rate), seconds(game, USUAL[0], usual_steps, rate)
    lowest, logs = LOWEST.get(game, 0.0), range(len(scores))

    def relative_time(drawn: list[int], share: float) -> float:
        """The time of the arm, relative to that of the batch of 32, with these logs."""
        curve, usual_curve = scores[drawn].mean(0), usual[drawn].mean(0)
        enough = lowest + share * (usual_curve.max() - lowest)
        return first_time(times, curve, enough) / first_time(usual_times, usual_curve, enough)

    for share in SHARES:
        whole = relative_time(list(logs), share)
        draws = [relative_time(list(drawn), share) for drawn in product(logs, repeat=len(logs))]
        sooner, never = np.less(draws, 1).mean(), np.isinf(draws).mean()
        yield [game, *ARM, share, f"{whole:.3f}", len(draws), f"{sooner:.4f}", f"{never:.4f}"]


def draws():
    rate = rates()
    lines = [line for game, arms in curves_of().items() for line in lines_of(game, arms, rate)]
    return [DRAW_HEADS, *lines]


def draw():
    """The mean over logs against the seconds of one seed alone; a panel for each game and rule."""
    curves, rate = curves_of(), rates()
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
            for arm, colour in zip(shown, drawing.COLOURS, strict=False):
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
    return figure


TABLES = {"table.csv": table, "draws.csv": draws}
FIGURES = {"curves.png": draw}
