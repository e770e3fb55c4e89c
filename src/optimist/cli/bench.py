"""`optimist bench`: the speed of this machine in one table."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

WHAT = """The parts: learner (updates per second by agent, network, batch size and seeds), data (batches
from the device, from memory, or compressed on disk), play (evaluation and collection).

The table compares each rate with its limit. For learning and data the limit follows from the
measured arithmetic and memory bandwidth of this machine; for play it is the rate of the
environments alone. Close other programs first: they make the rates lower."""


def bench(
    *,
    quick: Annotated[bool, "fewer rows; about a minute"] = False,
    peers: Annotated[
        bool, "also time PyTorch and d3rlpy; the first use installs them in an environment of their own"
    ] = False,
    only: Annotated[str | None, "only these parts, such as learner,play [learner,data,play]", "PARTS"] = None,
    rounds: Annotated[int | None, "timings of each row [5; quick: 3]"] = None,
    seconds: Annotated[float | None, "length of one timing [1; quick: 0.4]"] = None,
    out: Annotated[Path, "folder of bench.csv and bench.png", "FOLDER"] = Path("bench"),
) -> None:
    """Measure the speed of this machine: learning, reading data and play, each with its limit. The result is
    a table, a CSV file and a figure."""
    from optimist.studies.bench import peers as others
    from optimist.studies.bench import plan as plans
    from optimist.studies.bench.measuring import measured
    from optimist.studies.bench.results import line, sheet, write_figure, write_table
    from optimist.studies.sheet import print_sheet

    plan = plans.quick() if quick else plans.whole()
    if only:
        plan = replace(plan, parts=tuple(only.split(",")))
    given = {name: value for name, value in (("rounds", rounds), ("seconds", seconds)) if value is not None}
    plan = replace(plan, timing=replace(plan.timing, **given))
    rows = []
    for row in measured(plan, others.python() if peers else None):
        rows.append(row)
        print(line(row), flush=True)
        table = write_table(rows, out)  # whoever stops the measurement keeps these rows
    print_sheet(sheet(rows))
    print(f"wrote {table} and {write_figure(rows, out)}")
