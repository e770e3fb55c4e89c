"""Each published interval stands in a CSV file, and the CSV files follow from the scores.

The slow test makes every file again, bounds too."""

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from results.library import publish, scores

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
INTERVAL = re.compile(rf"({NUMBER})%?\s+\[({NUMBER}),\s+({NUMBER})\]")
ESTIMATES = ("estimate", "mean", "value", "difference", "difference_of_iqm")  # beside plain `low` and `high`
NAMES = ("agent", "minus", "other", "game", "rule", "precision", "one", "setting")  # whom a row is about
EMPTY = {"the", "all", "relative", "minus", "over", "then"}  # words of names that name nobody
OTHER_WORDS = {  # for those of the files
    "averaged": ("average",),
    "both": ("two repetitions",),
    "cautious": ("default rule", "ranking"),
    "first": ("50,000 steps",),
    "player": ("policy",),
    "quantiles": ("place of the sum",),
    "same": ("best in the",),
    "supported": ("within the support",),
    "tenth": ("50,000 steps",),
    "tf32": ("precision",),
}
REPEATS = re.compile(r"\|\s*(?:\||the same)")  # a row of a table whose label is that of a row before
BESIDE = {
    "epsilon-and-heads": ["asymptotic"],
    "dataset-quality": ["dataset-size"],
    "small-scale": ["small-scale/vectors"],
}  # whose files it quotes too
PAGES = [
    *("asymptotic", "bcq-divergence", "bounded-targets", "committee", "d3rlpy"),
    *("dataset-quality", "dataset-size"),
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
    *("committee/committee.csv", "dataset-size/parts.csv", "exploration/share.csv"),
    *("growing-the-log/differences.csv", "multi-network/differences.csv"),
]


class Row(NamedTuple):
    """Estimate, low and high of a row of a CSV file, and whom it is about."""

    numbers: tuple[float, ...]
    names: tuple[str, ...]

    def is_told_of_in(self, text: str) -> bool:
        """Whether each word of its names, or other words for it, are there."""
        words = set(re.findall(r"[a-z][a-z0-9]{2,}", " ".join(self.names).lower().replace("_", " "))) - EMPTY
        return all(any(each in text for each in (word, *OTHER_WORDS.get(word, ()))) for word in words)


def published(folders) -> list[Row]:
    """The intervals of the CSV files in these folders."""
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
                Row(
                    tuple(float(row[name]) for name in triple),
                    tuple(row[name].rpartition("/")[2] for name in NAMES if row.get(name)),
                )
                for row in rows
                for triple in triples
                if row[triple[1]]
            ]
    return found


def told(text: str, start: int, stop: int) -> str:
    """The words that say whom a number of a page is about: its paragraph, or the row of its table with the
    heads and with the label that "the same" or an empty cell repeats; the paragraph and the heading before,
    and the title of the page."""
    above = text[:start].rsplit("\n\n", 1)
    paragraph = above[-1] + text[start:].partition("\n\n")[0]
    line = above[-1].rpartition("\n")[2] + text[start:].partition("\n")[0]
    if line.startswith("|"):
        heads, *earlier = [*above[-1].splitlines()[:-1], ""]
        labels = [row for row in earlier if row[2:] and not REPEATS.match(row)]
        paragraph = " ".join([line, heads, *(labels[-1:] if REPEATS.match(line) else [])])
    before = above[0].rsplit("\n\n", 1)[-1] if len(above) > 1 else ""
    heading = [row for row in text[:start].splitlines() if row.startswith("#")][-1:]
    return " ".join([paragraph, before, *heading, text.partition("\n")[0]]).lower()


def missing(page: Path, folders) -> list[str]:
    """The intervals of a page that no row has, up to rounding, sign and percent, or only rows about others
    than those that the page names beside it."""
    rows, text = published(folders), page.read_text("utf-8")
    known = np.array([row.numbers for row in rows])
    mirrored = -known[:, [0, 2, 1]]
    forms = np.stack([known, mirrored, 100 * known, 100 * mirrored])
    lost = []
    for match in INTERVAL.finditer(text):
        shown = [float(number.replace(",", "")) for number in match.groups()]
        unit = 10.0 ** -len(match[1].partition(".")[2])
        equal = (abs(forms - shown) <= 0.51 * unit + 1e-9).all(axis=2).any(axis=0)
        words = told(text, *match.span())
        if not any(rows[number].is_told_of_in(words) for number in np.flatnonzero(equal)):
            lost.append(match[0])
    return lost


@pytest.mark.parametrize("page", PAGES)
def test_every_interval_of_a_page_is_in_a_file_beside_it(page):
    assert missing(RESULTS / page / "README.md", [page, *BESIDE.get(page, [])]) == []


def test_every_interval_of_the_claims_is_in_a_file():
    assert missing(ROOT / "docs/claims.md", [path.name for path in RESULTS.iterdir() if path.is_dir()]) == []


def test_every_interval_of_the_readme_is_in_the_claims():
    claims = INTERVAL.findall((ROOT / "docs/claims.md").read_text("utf-8"))
    readme = INTERVAL.findall((ROOT / "README.md").read_text("utf-8"))
    assert len(readme) > 3 and set(readme) <= set(claims)


def test_an_interval_that_no_file_has_is_found(tmp_path):
    (tmp_path / "page.md").write_text(
        "REM, pooled, gains +0.45 [+0.28, +0.63]\nand +0.45 [+0.28,\n+0.64], 93% [92, 94]\n"
    )
    assert missing(tmp_path / "page.md", ["asymptotic"]) == ["+0.45 [+0.28,\n+0.64]", "93% [92, 94]"]


def test_so_is_one_of_another_agent(tmp_path):
    """The first and the last row are right."""
    lines = [
        *("# Asymptotic", "", "| | gain |", "|---|---|", "| C51 | +0.32 [+0.08, +0.60] |"),
        *("| DQN (Adam) | +0.35 [+0.15, +0.61] |", "| the same | +0.32 [+0.08, +0.60] |"),
        "| | -0.01 [-0.18, +0.15] |",
    ]
    (tmp_path / "page.md").write_text("\n".join(lines))
    lost = ["+0.35 [+0.15, +0.61]", "+0.32 [+0.08, +0.60]"]
    assert missing(tmp_path / "page.md", ["asymptotic"]) == lost


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


def test_the_estimates_follow_from_the_scores(monkeypatch):
    """With two draws, because estimates do not depend on them."""
    monkeypatch.setattr(scores, "DRAWS", 2)
    for path in QUICK:
        page, _, name = path.partition("/")
        theirs = without_bounds((RESULTS / path).read_text("utf-8"))
        assert_alike(without_bounds(publish.table(page, name)), theirs, path)


@pytest.mark.slow
@pytest.mark.parametrize("page", publish.PAGES)
def test_every_table_of_a_page_follows_from_its_data(page):
    for name in publish.analysis(page).TABLES:
        assert_alike(
            numbers(publish.table(page, name)), numbers((RESULTS / page / name).read_text("utf-8")), name
        )


def assert_alike(mine: list[list], theirs: list[list], path: str) -> None:
    """The same words, and the same numbers up to what another machine may round otherwise."""
    for one, other in zip(mine, theirs, strict=True):
        for each, known in zip(one, other, strict=True):
            close = isinstance(each, float) and each == pytest.approx(known, rel=1e-3, abs=2e-3, nan_ok=True)
            assert close or each == known, (path, one, other)
