"""Recompute every interval of the published pages from their scores, and write the CSV files beside them.

    python docs/results/recompute.py                    # all pages: two minutes on two cores
    python docs/results/recompute.py online selection   # some pages

`resampling.py` has the definitions. Pages that are not named here have a command of their own.
"""

import csv
import importlib.util
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import differences
from command import call, refuse
from resampling import HEADS, RESULTS

from optimist.studies.scores import intervals, table_one
from optimist.studies.scores.normalisation import from_csv
from optimist.studies.scores.score_files import ScoreFile, read_scores

STUDIES = {  # the first letters of its files: its scores, and how many evaluations are read
    "asymptotic/1x-": ("scores.csv", 5),
    "asymptotic/5x-": ("scores.csv", 25),
    "epsilon-and-heads/1x-": ("scores.csv", 5),
    "epsilon-and-heads/5x-": ("scores.csv", 25),
    "multi-network/2x-": ("scores-2x.csv", 20),
    "multi-network/2.5x-": ("scores-2.5x.csv", 25),
    "online/": ("scores.csv", 20),
    "small-scale/": ("scores.csv", 20),
    "ten-times-the-log/0.5x-": ("scores.csv", 25),
    "ten-times-the-log/1x-": ("scores.csv", 50),
}
SCRIPTS = {
    "asymptotic/repetition.csv": "repetition.py",
    "bcq-divergence/divergence.csv": "divergence.py",
    "bounded-targets/bounded.csv": "bounded.py",
    "committee/committee.csv": "analyse.py",
    "dataset-size/parts.csv": "parts.py",
    "exploration/share.csv": "share.py",
    "selection/correlations.csv": "too_early.py",
    "selection/discount.csv": "discount.py",
    "selection/regret.csv": "regret.py",
    "ten-times-the-log/decay.csv": "decay.py",
}
DIFFERENCES: dict[str, Callable[[], Iterator[list]]] = {
    "asymptotic/differences.csv": differences.asymptotic,
    "d3rlpy/differences.csv": differences.d3rlpy,
    "epsilon-and-heads/differences.csv": differences.epsilon_and_heads,
    "final-buffer/differences.csv": differences.final_buffer,
    "growing-the-log/differences.csv": differences.growing_the_log,
    "multi-network/differences.csv": differences.multi_network,
    "online/differences.csv": differences.online,
    "small-scale/vectors/differences.csv": differences.vectors,
    "ten-times-the-log/differences.csv": differences.ten_times_the_log,
}


def study(start: str) -> dict[str, str]:
    """The tables that `optimist scores` and a study's report have, by the names of their files."""
    name, evaluations = STUDIES[start]
    folder = RESULTS / Path(start + "x").parent
    file, by = read(folder / name, evaluations), from_csv(folder / "normaliser.csv")
    matrices, paired = intervals.matrices(file, by), folder.name != "online"  # each online agent has own logs
    texts = {
        "aggregates": lambda: intervals.csv_text(intervals.rows(matrices, paired=paired)),
        "pairs": lambda: intervals.pairs_csv(matrices),
        "table": lambda: table_one.table_csv(table_one.table_one(file, by)),
        "per_game": lambda: table_one.per_game_csv(table_one.per_game(file, by)),
    }
    known = {f"{start}{part}.csv": text for part, text in texts.items()}
    return {path: rounded(text()) for path, text in known.items() if (RESULTS / path).exists()}


def rounded(text: str) -> str:
    """Six decimals, so that another machine writes the same file."""
    return re.sub(r"-?\d+\.\d{7,}(e-\d+)?", lambda number: f"{float(number[0]):.6f}", text)


def read(path: Path, evaluations: int) -> ScoreFile:
    """The first evaluations of every run."""
    whole = read_scores(path)
    cut = {
        agent: {
            game: {
                seed: {step: curve[step] for step in sorted(curve)[:evaluations]}
                for seed, curve in seeds.items()
            }
            for game, seeds in games.items()
        }
        for agent, games in whole.agents.items()
    }
    return ScoreFile(cut, whole.axis)


def of_script(path: str) -> str:
    """What the script of a page prints."""
    place = RESULTS / Path(path).parent / SCRIPTS[path]
    sys.path.insert(0, str(place.parent))  # discount.py needs regret.py
    spec = importlib.util.spec_from_file_location(place.stem, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return text_of([module.HEADS, *module.lines()])


def text_of(rows: list) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def recomputed(pages: list[str]) -> Iterator[tuple[str, str]]:
    """Path and text of each file of the pages, or of all pages."""
    known = {path.partition("/")[0] for path in (*STUDIES, *SCRIPTS, *DIFFERENCES)}
    if unknown := set(pages) - known:
        refuse(f"no intervals of {', '.join(unknown)}: the pages are {', '.join(sorted(known))}")

    def wanted(path: str) -> bool:
        return not pages or path.partition("/")[0] in pages

    for start in filter(wanted, STUDIES):
        yield from study(start).items()
    for path in filter(wanted, SCRIPTS):
        yield path, of_script(path)
    for path in filter(wanted, DIFFERENCES):
        yield path, text_of([HEADS, *DIFFERENCES[path]()])


def main(*pages: str) -> None:
    for path, text in recomputed(list(pages)):
        (RESULTS / path).write_text(text)
        print(path)


if __name__ == "__main__":
    call(__doc__, main)
