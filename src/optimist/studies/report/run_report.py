"""The page of one run: how training went, with or without an environment, in one file."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optimist.data.disk.files import make_folder, write_whole
from optimist.errors import RunError
from optimist.studies.report.figures import FAINT, INK, colour, dash, dress, laid_out, svg
from optimist.studies.report.page import Picture, page, picture
from optimist.studies.results.run_curves import estimator_sheet, estimators_of
from optimist.studies.scores.curves import curves
from optimist.studies.sheet import in_words
from optimist.training.guard import TIMES
from optimist.training.measures import SHARES, Course, held_out_courses, held_out_remarks, title
from optimist.training.storage.alarms import read_alarms
from optimist.training.storage.metrics import RunCurve, curves_of, read_metrics
from optimist.training.storage.run_folder import EPISODES, read_config

WIDTH, HEIGHT = 3.75, 2.6  # inches: three fit in a row, and one fits on a phone
WIDE = 100  # ratio of values above which the axis is logarithmic
CAPTIONS = {
    "value_ratio": "The size that 95 of 100 values of logged states do not exceed, relative to the largest "
    f"return of the log. Above {TIMES} at three measurements in a row, the seed counts as diverged.",
    "agreement": "How often the policy takes the logged action; for action vectors, how close it comes.",
    "value_drift": "The mean change of the values since the previous measurement, relative to the largest "
    "return of the log. It falls as the values settle.",
    "estimate": "The mean value of logged states; the grey line is the mean return from there in the log.",
    "return": "Mean return of the evaluation episodes, played in the environment.",
}
LOSS = "The loss on episodes that were held back; it {}."
MARKED = " The dotted line is where it was lowest."
Curves = dict[int, RunCurve]


def write_run_report(run: Path, out: Path, *, command: str) -> list[str]:
    """Write the page and return its warnings."""
    config, rows = read_config(run), read_metrics(run)
    if not rows:
        raise RunError(f"{run} has no logged values: train it with the logger jsonl")
    warned = warnings(run, config, rows)
    table = estimator_sheet(rows)
    content = page(
        "run.html.j2",
        title=f"{config['agent']['name']} {_where(config)}",
        headline=headline(config, rows),
        warnings=warned,
        figures=list(_pictures(run, rows)),
        estimators=table if table.rows else None,
        settings={name: _in_words(config.get(name, {})) for name in ("agent", "training", "dataset")},
        run=str(run),
        command=command,
    )
    make_folder(out.parent)
    write_whole(out, content)
    return warned


def _where(config: dict) -> str:
    """What it learned from, or where it played."""
    path = config.get("dataset", {}).get("path")
    return f"in {config['environment']}" if path is None else f"on {Path(path).name}"


def headline(config: dict, rows: list[dict]) -> str:
    seeds, step, steps = len(config["seeds"]), rows[-1]["step"], config["training"]["steps"]
    done = f"{seeds} {'seed' if seeds == 1 else 'seeds'}, {step:,} of {steps:,} steps"
    if config["environment"]:
        return f"{done}, evaluated in {config['environment']}."
    return f"{done}, no environment: the curves show how training goes, not how well the policy acts."


def warnings(run: Path, config: dict, rows: list[dict]) -> list[str]:
    lines = []
    for seed, alarm in read_alarms(run).items():
        kept = f"; its last healthy policy is of step {alarm.healthy:,} (--step healthy)"
        since = f"seed {seed} diverged at step {alarm.step:,}"
        lines.append(f"{since}{kept}")
    if rows[-1]["step"] < config["training"]["steps"]:
        lines.append(f"the run is not finished: the same command continues it from step {rows[-1]['step']:,}")
    return [*lines, *(remark.line for remark in held_out_remarks(rows) if remark.warns)]


def _pictures(run: Path, rows: list[dict]) -> Iterator[Picture]:
    """Returns first if the run was evaluated, then the estimators, then the losses in training."""
    if (run / EPISODES).exists():
        found = {
            seed: RunCurve(np.array(list(curve)), np.array(list(curve.values())))
            for seed, curve in curves(run).items()
        }
        yield _drawn("return", CAPTIONS["return"], found)
    courses = held_out_courses(rows)
    for name in estimators_of(rows):
        caption, extra = _explained(name, courses.get(name))
        yield _drawn(title(name), caption, curves_of(rows, name), share=name in SHARES, extra=extra)
    if estimates := curves_of(rows, "estimate"):
        logged = [curve.values[-1] for curve in curves_of(rows, "logged_value").values()]
        yield _drawn("estimate", CAPTIONS["estimate"], estimates, extra=_line_at(logged))
    for name in dict.fromkeys(name for row in rows for name in row if name.startswith("loss_")):
        words = f"loss {name.removeprefix('loss_')}"
        yield _drawn(words, "The loss on the minibatches in training.", curves_of(rows, name))


def _named(seed: int, curve: RunCurve, times: float) -> dict[str, Any]:
    """The label of a seed's line; a single value is no line, so it is a dot with its number."""
    if len(curve.steps) > 1:
        return {"label": f"seed {seed}"}
    return {"label": f"seed {seed}: {times * curve.values[0]:.4g} at step {curve.steps[0]:,}", "marker": "o"}


def _explained(name: str, course: Course | None) -> tuple[str, Callable[[Axes], object] | None]:
    """The caption of an estimator's figure, and what is drawn besides the curves."""
    if name in CAPTIONS:
        return CAPTIONS[name], (_limit if name == "value_ratio" else None)
    if course is None:
        return "The loss on episodes that were held back.", None
    if not course.rose:
        return LOSS.format(course), None
    mark: Any = {"color": INK, "linewidth": 1, "linestyle": ":"}
    return LOSS.format(course) + MARKED, lambda axes: axes.axvline(course.step, **mark)


def _drawn(
    words: str,
    caption: str,
    found: Curves,
    *,
    share: bool = False,
    extra: Callable[[Axes], object] | None = None,
) -> Picture:
    """A line for each seed."""
    figure = Figure((WIDTH, HEIGHT), layout="constrained")
    axes = figure.subplots()
    times = 100 if share else 1
    for place, (seed, curve) in enumerate(found.items()):
        look: Any = {"color": colour(place), "linestyle": dash(place), "linewidth": 1.2}
        axes.plot(curve.steps, times * curve.values, **look, **_named(seed, curve, times))
    every = np.concatenate([curve.values for curve in found.values()])
    if every.min() > 0 and every.max() > WIDE * every.min():
        axes.set_yscale("log")
    if extra:
        extra(axes)
    dress(axes, xlabel="gradient steps", ylabel=f"{words} in %" if share else words)
    if 1 < len(found) <= 6 or len(every) == 1:
        axes.legend(frameon=False, fontsize=8)
    return picture(words.capitalize(), caption, svg(laid_out(figure)), WIDTH)


def _limit(axes: Axes) -> None:
    """The ratio above which a measurement counts as diverged, if the curve comes near it."""
    if axes.get_ylim()[1] > TIMES / 2:
        axes.axhline(TIMES, color=INK, linewidth=1, linestyle=":")


def _line_at(values: list[float]) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        for value in sorted(set(values)):
            axes.axhline(value, color=FAINT, linewidth=1, linestyle="--")

    return draw


def _in_words(table: dict[str, Any]) -> dict[str, str]:
    known = {name: value for name, value in table.items() if value not in (None, "")}
    return {name.replace("_", " "): in_words(value) for name, value in known.items()}
