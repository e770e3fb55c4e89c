"""`optimist bench`: the speed of this machine in one table."""

from pathlib import Path
from typing import Annotated


def bench(
    *,
    quick: Annotated[bool, "fewer rows; about a minute"] = False,
    rounds: Annotated[int, "timings of each row"] = 3,
    seconds: Annotated[float, "length of one timing"] = 0.5,
    out: Annotated[Path, "the table", "FILE.csv"] = Path("bench.csv"),
) -> None:
    """Measure the speed of this machine: updates per second by agent, network, batch size and seeds, and
    steps per second of play. Close other programs first: they make the rates lower."""
    from optimist.studies.bench import Timing, measured, rounded, sheet
    from optimist.studies.sheet import as_csv, print_sheet

    rows = []
    for subject, rate in measured(quick, Timing(rounds, seconds)):
        rows.append((subject, rate))
        print(f"{subject.what} ({subject.network}): {rounded(rate)} {subject.unit}", flush=True)
        out.write_text(as_csv(sheet(rows)), "utf-8")  # whoever stops the measurement keeps these rows
    print_sheet(sheet(rows))
    print(f"wrote {out}")
