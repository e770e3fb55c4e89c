"""The page of one run: how training went, with or without an environment, in one file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from optimist.errors import RunError
from optimist.studies.report.drawing import FAINT, INK, Line, chart
from optimist.studies.report.page import Picture, picture, write_html
from optimist.studies.scores.curves import curves, estimator_sheet, estimators_of
from optimist.studies.sheet import facts_in_words
from optimist.training.guard import TIMES
from optimist.training.measures import SHARES, Course, held_out_courses, held_out_remarks, title
from optimist.training.storage.rows import EPISODES, RunCurve, curves_of, read_metrics
from optimist.training.storage.run_folder import read_alarms, read_config

NAMED = 6  # seeds up to which a small figure has room for their names
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
HELD_OUT = "The loss on episodes that were held back."
LOSS = "The loss on episodes that were held back; it {}."
MARKED = " The dotted line is where it was lowest."
Curves = dict[int, RunCurve]


def write_run_report(run: Path, out: Path, *, command: str) -> list[str]:
    """Write the page and return its warnings."""
    config, rows = read_config(run), read_metrics(run)
    if not rows:
        raise RunError(f"{run} has no logged values: train it with the logger jsonl")
    warned, table = warnings(run, config, rows), estimator_sheet(rows)
    log = config.get("dataset", {}).get("path")
    where = f"in {config['environment']}" if log is None else f"on {Path(log).name}"
    write_html(
        out,
        "run.html.j2",
        title=f"{config['agent']['name']} {where}",
        headline=headline(config, rows),
        warnings=warned,
        figures=list(_pictures(run, rows)),
        estimators=table if table.rows else None,
        settings={name: facts_in_words(config.get(name, {})) for name in ("agent", "training", "dataset")},
        run=str(run),
        command=command,
    )
    return warned


def headline(config: dict, rows: list[dict]) -> str:
    seeds, step, steps = len(config["seeds"]), rows[-1]["step"], config["training"]["steps"]
    done = f"{seeds} {'seed' if seeds == 1 else 'seeds'}, {step:,} of {steps:,} steps"
    if config["environment"]:
        return f"{done}, evaluated in {config['environment']}."
    return f"{done}, no environment: the curves show how training goes, not how well the policy acts."


def warnings(run: Path, config: dict, rows: list[dict]) -> list[str]:
    lines = []
    for seed, alarm in read_alarms(run).items():
        healthy = f"its last healthy policy is of step {alarm.healthy:,} (--step healthy)"
        lines.append(f"seed {seed} diverged at step {alarm.step:,}; {healthy}")
    if rows[-1]["step"] < config["training"]["steps"]:
        lines.append(f"the run is not finished: the same command continues it from step {rows[-1]['step']:,}")
    return [*lines, *(remark.line for remark in held_out_remarks(rows) if remark.warns)]


def _pictures(run: Path, rows: list[dict]) -> Iterator[Picture]:
    """Returns first if the run was evaluated, then the estimators, then the losses in training."""
    if (run / EPISODES).exists():
        returns = {
            seed: RunCurve(np.array(list(curve)), np.array(list(curve.values())))
            for seed, curve in curves(run).items()
        }
        yield _picture("return", CAPTIONS["return"], returns)
    courses = held_out_courses(rows)
    for name in estimators_of(rows):
        yield _estimator(name, curves_of(rows, name), courses.get(name))
    if estimates := curves_of(rows, "estimate"):
        logged = [float(curve.values[-1]) for curve in curves_of(rows, "logged_value").values()]
        yield _picture("estimate", CAPTIONS["estimate"], estimates, levels=logged)
    for name in dict.fromkeys(name for row in rows for name in row if name.startswith("loss_")):
        words = f"loss {name.removeprefix('loss_')}"
        yield _picture(words, "The loss on the minibatches in training.", curves_of(rows, name))


def _estimator(name: str, curves: Curves, course: Course | None) -> Picture:
    if name not in CAPTIONS:  # a held-out loss
        rose, caption = bool(course and course.rose), LOSS.format(course) if course else HELD_OUT
        mark = course.step if course and rose else None
        return _picture(title(name), caption + MARKED * rose, curves, mark=mark)
    times = 100 if name in SHARES else 1
    curves = {seed: RunCurve(curve.steps, times * curve.values) for seed, curve in curves.items()}
    highest = max(curve.values.max() for curve in curves.values())
    is_near = name == "value_ratio" and highest > TIMES / 2
    words = f"{title(name)} in %" if name in SHARES else title(name)
    return _picture(words, CAPTIONS[name], curves, levels=[TIMES] if is_near else [])


def _picture(
    words: str, caption: str, curves: Curves, *, levels: Sequence[float] = (), mark: float | None = None
) -> Picture:
    """A line for each seed, horizontal lines at `levels`, and a dotted one at the step `mark`. A single value
    is no line, so it is a dot, and its label has the number."""
    every = np.concatenate([curve.values for curve in curves.values()])
    wide = every.min() > 0 and every.max() > WIDE * every.min()
    lines = {}
    for seed, curve in curves.items():
        label, dot = f"seed {seed}", None
        if len(curve.steps) == 1:
            dot = (float(curve.steps[0]), float(curve.values[0]))
            label += f": {dot[1]:.4g} at step {curve.steps[0]:,}"
        lines[label] = Line(curve.steps, curve.values, dot=dot)
    figure = chart(
        lines,
        xlabel="gradient steps",
        ylabel=words,
        scale="log" if wide else "linear",
        has_legend=1 < len(curves) <= NAMED or len(every) == 1,
    )
    for level in sorted(set(levels)):
        figure.axes[0].axhline(level, color=FAINT, linewidth=1, linestyle="--")
    if mark is not None:
        figure.axes[0].axvline(mark, color=INK, linewidth=1, linestyle=":")
    return picture(words.removesuffix(" in %").capitalize(), caption, figure)
