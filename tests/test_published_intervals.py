"""Each published interval stands in a CSV file, and the CSV files follow from the scores.

`test_documentation.py` runs the commands of the pages, which make every file again, bounds too."""

import csv
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
INTERVAL = re.compile(rf"({NUMBER})%?\s+\[({NUMBER}),\s+({NUMBER})\]")
ESTIMATES = ("estimate", "mean", "value", "difference", "difference_of_iqm")  # beside plain `low` and `high`
BESIDE = {
    "epsilon-and-heads": ["asymptotic"],
    "dataset-quality": ["dataset-size"],
}  # whose files it quotes too
PAGES = [
    *("asymptotic", "bcq-divergence", "bounded-targets", "d3rlpy", "dataset-quality", "dataset-size"),
    *(
        "epsilon-and-heads",
        "exploration",
        "final-buffer",
        "growing-the-log",
        "large-batches",
        "multi-network",
        "online",
        "pong",
    ),
    *("precision", "selection", "small-scale", "ten-times-the-log"),
]


QUICK = [
    *("asymptotic/repetition.csv", "bcq-divergence/divergence.csv", "bounded-targets/bounded.csv"),
    *("dataset-size/parts.csv", "exploration/share.csv"),
    *("dataset-size/older.csv", "growing-the-log/differences.csv", "multi-network/differences.csv"),
]


@pytest.fixture(scope="module")
def scripts():
    """docs/results as the scripts there see it."""
    sys.path.insert(0, str(RESULTS))
    yield
    sys.path.remove(str(RESULTS))


def published(folders) -> np.ndarray:
    """Estimate, low and high of every row of the CSV files in these folders."""
    found = []
    for path in (path for folder in folders for path in sorted((RESULTS / folder).glob("*.csv"))):
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            heads = rows.fieldnames or ()
            triples = [
                (estimate, low, low.removesuffix("low") + "high")
                for low in heads
                if low.endswith("low")
                for estimate in (low.removesuffix("_low"), *ESTIMATES)
                if estimate in heads and estimate != low
            ]
            found += [
                [float(row[name]) for name in triple] for row in rows for triple in triples if row[triple[1]]
            ]
    return np.array(found)


def missing(page: Path, folders) -> list[str]:
    """The intervals of a page that no row has, up to rounding, sign and percent."""
    rows = published(folders)
    mirrored = -rows[:, [0, 2, 1]]
    rows = np.concatenate([rows, mirrored, 100 * rows, 100 * mirrored])
    lost = []
    for match in INTERVAL.finditer(page.read_text("utf-8")):
        shown = [float(text.replace(",", "")) for text in match.groups()]
        unit = 10.0 ** -len(match[1].partition(".")[2])
        if not (abs(rows - shown) <= 0.51 * unit + 1e-9).all(axis=1).any():
            lost.append(match[0])
    return lost


@pytest.mark.parametrize("page", PAGES)
def test_every_interval_of_a_page_is_in_a_file_beside_it(page):
    assert missing(RESULTS / page / "README.md", [page, *BESIDE.get(page, [])]) == []


def test_every_interval_of_the_claims_is_in_a_file():
    assert missing(ROOT / "docs/claims.md", [path.name for path in RESULTS.iterdir() if path.is_dir()]) == []


def test_an_interval_that_no_file_has_is_found(tmp_path):
    (tmp_path / "page.md").write_text(
        "REM gains +0.45 [+0.28, +0.63]\nand +0.45 [+0.28,\n+0.64], 93% [92, 94]\n"
    )
    assert missing(tmp_path / "page.md", ["asymptotic"]) == ["+0.45 [+0.28,\n+0.64]", "93% [92, 94]"]


def numbers(text: str) -> list[list[float | str]]:
    """The rows of a CSV file, numbers as numbers."""

    def value(cell: str) -> float | str:
        try:
            return float(cell)
        except ValueError:
            return cell

    return [[value(cell) for cell in row] for row in csv.reader(text.splitlines())]


def without_bounds(text: str) -> list[list]:
    heads, *rows = numbers(text)
    kept = [place for place, head in enumerate(heads) if not str(head).endswith(("low", "high"))]
    return [[row[place] for place in kept] for row in (heads, *rows)]


def test_the_estimates_follow_from_the_scores(scripts, monkeypatch):
    """With two draws, because estimates do not depend on them."""
    import differences
    import recompute
    import resampling

    for module in (resampling, differences):
        monkeypatch.setattr(module, "DRAWS", 2)
    files = {path: recompute.of_script(path) for path in QUICK if path in recompute.SCRIPTS}
    for path in (path for path in QUICK if path not in files):
        files[path] = recompute.text_of([resampling.HEADS, *recompute.DIFFERENCES[path]()])
    for path, text in files.items():
        theirs = without_bounds((RESULTS / path).read_text("utf-8"))
        assert_alike(without_bounds(text), theirs, path)


def assert_alike(mine: list[list], theirs: list[list], path: str) -> None:
    """The same words, and the same numbers up to what another machine may round otherwise."""
    for one, other in zip(mine, theirs, strict=True):
        for each, known in zip(one, other, strict=True):
            close = isinstance(each, float) and each == pytest.approx(known, rel=1e-3, abs=2e-3, nan_ok=True)
            assert close or each == known, (path, one, other)
