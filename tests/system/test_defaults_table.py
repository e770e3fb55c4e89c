"""The guide's table of agents is what was measured (`python -m benchmarks defaults`)."""

import csv
from pathlib import Path

from benchmarks.defaults import table

ROOT = Path(__file__).parents[2]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_guide_has_the_measured_scores():
    with open(ROOT / "benchmarks" / "defaults" / "measured.csv", newline="") as file:
        measured = table([tuple(row) for row in csv.reader(file)])
    page = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    rows = {
        cells(line)[0].split()[0]: cells(line)[1:] for line in page.splitlines() if line.startswith("| `")
    }
    agents = [cells(line) for line in measured.splitlines()[2:]]
    assert len(agents) == 8
    for name, *scores, alarms in agents:
        assert rows[name] == scores
        assert alarms == "0"  # the page says that no run diverged
