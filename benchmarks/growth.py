"""How the cost of an update grows with heads, batch size and seeds, and that of a batch with the log's size.

`python -m benchmarks growth` measures on this machine and writes results/performance/growth.csv (with
WHAT=heads, batch, seeds or steps it replaces only those rows);
`python -m benchmarks.growth` only draws growth.png from that file and from the H200's figures of
results/agents. The unit is processor time, which others on the machine disturb least. Each figure is the
least of a few.
"""

import csv
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.repeated import repeated
from optimist.studies.report import drawing

ROOT = Path(__file__).parents[1] / "results"
CSV, PICTURE = ROOT / "performance" / "growth.csv", ROOT / "performance" / "growth.png"
H200 = ROOT / "agents" / "learner-h200.csv"
TIMES, SECONDS = 5, 0.2
HEADS, BATCHES, SEEDS, STEPS = (
    (1, 10, 50, 200, 800),
    (8, 32, 128, 512),
    (1, 2, 5, 10),
    (10_000, 100_000, 1_000_000, 10_000_000, 50_000_000),
)
DISTINCT = 500_000  # steps; a longer log repeats its shards by hard links
SCALES = {"batch": "log", "seeds": "log"}  # of the vertical axis; the others begin at zero
COLUMNS = ("what", "value", "milliseconds")
LABELS = {
    "heads": "heads of REM (batch 32, 1 seed)",
    "batch": "batch size (REM, 200 heads, 1 seed)",
    "seeds": "fused seeds (REM, 200 heads, batch 32)",
    "steps": "steps of the log (compressed on disk)",
}


def milliseconds(do: Callable[[], int]) -> float:
    """Milliseconds of processor time for one unit, the least of a few timings."""
    do()
    found = []
    for _ in range(TIMES):
        done, before = 0, time.process_time()
        while time.process_time() - before < SECONDS:
            done += do()
        found.append(1e3 * (time.process_time() - before) / done)
    return min(found)


def learner_cost(heads: int = 200, batch: int = 32, seeds: int = 1) -> float:
    """An update of one seed of REM on the MinAtar network."""
    from optimist.agents import preset
    from optimist.data.sampling import Sampler
    from optimist.studies.bench import random_log, updating
    from optimist.training.feeding import feed_of
    from optimist.training.learner import Learner
    from optimist.training.settings import with_values

    log, steps = random_log("minatar", 10_000), 20
    learner = Learner(with_values(preset("rem"), {"columns": heads}, "rem"), log.spec)
    home = feed_of([Sampler(log, batch=batch, seed=seed) for seed in range(seeds)], "device")
    return milliseconds(updating(learner, home, seeds, steps))


def feeding_cost(steps: int) -> float:
    """A batch of 32 MinAtar-like transitions, decoded from a log of this size on disk."""
    from optimist.data.dataset import Dataset
    from optimist.data.sampling import Sampler, transitions

    random, recorded = np.random.default_rng(0), min(steps, DISTINCT)
    arrays = {
        "observations": random.random((recorded, 10, 10, 4)) < 0.1,
        "actions": random.integers(0, 3, recorded),
        "rewards": random.random(recorded),
        "terminals": np.arange(recorded) % 100 == 99,
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Dataset.from_arrays(**arrays, truncations=False).save(Path(folder) / "log")
        if steps > recorded:
            (Path(folder) / "long").mkdir()
            repeated(Path(folder) / "log", Path(folder) / "long", steps)
            log = Dataset.open(Path(folder) / "long")
        sampler, turn = Sampler(log), iter(range(10**9))
        log.timeline.frames(np.arange(0, log.timeline.frame_count, 1000))  # opens and hashes every file

        def do() -> int:
            transitions(sampler, sampler.positions(next(turn), 1)[0], log.timeline.frames)
            return 1

        return milliseconds(do)


def main() -> None:
    cases = {
        "heads": (HEADS, lambda value: learner_cost(heads=value)),
        "batch": (BATCHES, lambda value: learner_cost(batch=value)),
        "seeds": (SEEDS, lambda value: learner_cost(seeds=value)),
        "steps": (STEPS, feeding_cost),
    }
    chosen = os.environ.get("WHAT", "")
    rows = [row for row in _saved() if chosen and row[0] != chosen]
    for what, (values, cost) in cases.items():
        for value in values if chosen in ("", what) else ():
            rows.append((what, str(value), str(round(cost(value), 4))))
            print(*rows[-1], flush=True)
    with open(CSV, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    draw()


def _saved() -> list[tuple[str, ...]]:
    """The rows of the file: what grows, its value, milliseconds."""
    with open(CSV, newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def draw() -> None:
    """The figure, from the files alone."""
    rows = _saved()
    figure = Figure(figsize=(9, 6), layout="constrained")
    for axes, (what, label) in zip(figure.subplots(2, 2).flat, LABELS.items(), strict=True):
        points = [(float(value), float(milliseconds)) for name, value, milliseconds in rows if name == what]
        _line(axes, points, "two ARM cores, processor time", 0)
        if what == "seeds":
            _line(axes, h200_seeds(), "H200, elapsed time", 1)
        unit = "ms of processor time / batch" if what == "steps" else "ms / update of one seed"
        axes.set(xscale="log", yscale=SCALES.get(what, "linear"), xlabel=label, ylabel=unit)
        if what not in SCALES:
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: drawing.short_count(value)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=drawing.FAINT, alpha=0.25, linewidth=0.7)
        axes.legend(frameon=False, fontsize=8)
    drawing.save_png(drawing.laid_out(figure), PICTURE)
    print(f"wrote {PICTURE}")


def _line(axes: Axes, points: list[tuple[float, float]], label: str, number: int) -> None:
    axes.plot(*zip(*points, strict=True), marker="o", color=drawing.colour(number), label=label)


def h200_seeds() -> list[tuple[float, float]]:
    """Fused seeds and the milliseconds of an update of one of them, wall-clock time."""
    with open(H200, newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["network"], row["agent"], row["preset"]) == ("minatar", "rem", "paper")
        ]
    return [(float(row["seeds"]), 1e3 / float(row["rate"])) for row in rows]


if __name__ == "__main__":
    draw()
