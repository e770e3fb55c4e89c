"""Table 1 of the paper: each agent's median over games and the games it wins, beside the paper's numbers.

`best` is the paper's way: in each game, the best iteration of the mean over seeds. It is a maximum over many
evaluations, chosen by the very seeds that it scores. Beside it stand the same with the choice made by the
other seeds (`cross`), and what needs no choice: the last, the mean of the last few, and of all (`area`).
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from optimist.data.disk.files import make_folder, write_whole
from optimist.studies.scores import reference
from optimist.studies.scores.curves import RECENT
from optimist.studies.scores.normalisation import KINDS, Ending, Normaliser, ending, seed_means
from optimist.studies.scores.plain_tables import csv_table, markdown_table
from optimist.studies.scores.score_files import ScoreFile

MAIN = ("best", "cross", "last")  # where there is no room for all
PAPER = ("1X", "5X")  # the gradient steps of online DQN, and five times as many


class Cell(NamedTuple):
    """Median over games of the normalised score in percent, and the games better than the yardstick."""

    median: float
    better: int


@dataclass(frozen=True)
class GameRow:
    """One agent in one game: scores averaged over seeds, and their improvement in percent."""

    agent: str
    game: str
    score: Ending
    improvement: Ending


@dataclass(frozen=True)
class Row:
    """One agent over all games; `paper` holds the numbers it has in the paper, by its gradient steps."""

    agent: str
    games: int
    seeds: int
    evaluations: int
    best: Cell
    cross: Cell | None
    last: Cell
    mean_of_last: Cell
    area: Cell
    paper: Mapping[str, Cell]


def per_game(scores: ScoreFile, by: Normaliser, recent: int = RECENT) -> dict[str, list[GameRow]]:
    """For each agent its games, the least improved first as in Figure 4."""
    rows: dict[str, list[GameRow]] = {}
    for agent, by_game in scores.agents.items():
        seed_means(by_game)  # raises where seeds were evaluated at different times
        ends = {game: ending(seeds, recent) for game, seeds in by_game.items()}
        rows[agent] = sorted(
            (GameRow(agent, game, end, _improvement(game, end, by)) for game, end in ends.items()),
            key=lambda row: (row.improvement.best, row.game),
        )
    return rows


def table_one(
    scores: ScoreFile, by: Normaliser, recent: int = RECENT, *, whole_log: bool = True
) -> list[Row]:
    """A row per agent, in the order of the file; the paper's numbers are of agents with the whole log."""
    comparable = whole_log and by.yardstick == "DQN"
    rows = []
    for agent, games in per_game(scores, by, recent).items():
        curves = next(iter(scores.agents[agent].values()))
        cells: dict[str, Any] = {kind: _cell(games, kind, by) for kind in KINDS}
        rows.append(
            Row(
                agent=agent,
                games=len(games),
                seeds=len(curves),
                evaluations=len(next(iter(curves.values()))),
                paper=paper_cells(agent) if comparable else {},
                **cells,
            )
        )
    return rows


def paper_cells(agent: str) -> dict[str, Cell]:
    """What the paper reports for an agent of this name, such as "qr_dqn", "REM" or "DQN (Adam) (1X)"."""
    plain = _plain(agent)
    found = {}
    for row in reference.paper_table():
        if plain in (_plain(row["agent"]), _plain(row["agent"] + row["steps"])):
            found[row["steps"]] = Cell(float(row["median_percent"]), int(row["games_better"]))
    return found


def cell_text(cell: Cell | None) -> str:
    return f"{cell.median:.1f}% / {cell.better}" if cell else ""


def headings(recent: int = RECENT, kinds: Sequence[str] = KINDS) -> tuple[str, ...]:
    titles = [kind_title(kind, None, recent) for kind in kinds]
    return ("agent", *titles, *(f"paper, {steps}" for steps in PAPER))


def kind_title(kind: str, evaluations: int | None, recent: int = RECENT) -> str:
    """'best of 50', 'cross-chosen best', 'last', 'mean of last 3' (or of fewer where there are no more)."""
    recent = min(recent, evaluations or recent)
    return {
        "best": f"best of {evaluations}" if evaluations else "best",
        "cross": "cross-chosen best",
        "last": "last",
        "mean_of_last": f"mean of last {recent}",
        "area": "mean of all",
    }[kind]


def title(rows: Sequence[Row], by: Normaliser) -> str:
    games = f"{rows[0].games} game{'s' * (rows[0].games != 1)}"
    return f"median normalised score / games > {by.yardstick}, of {games}"


def notes(rows: Sequence[Row], by: Normaliser) -> list[str]:
    """What one must know to read the table."""
    counts = sorted({row.evaluations for row in rows})
    looks = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}, which favours the most,"
    lines = [
        f"seeds: {rows[0].seeds}; best: each game's best of {looks} evaluations of the mean over seeds",
        "cross-chosen best: each seed is scored at the evaluation that is best for the other seeds",
        f"0 and 100% are random play and {by.yardstick}, the worse and the better: {by.provenance}",
    ]
    if any(row.paper for row in rows):
        lines.append(
            "the paper's numbers: best, over 60 Atari games and 5 seeds, by its own scores of DQN and random"
        )
    return lines


def write(
    out: Path,
    rows: Sequence[Row],
    games: Mapping[str, Sequence[GameRow]],
    by: Normaliser,
    recent: int,
    notes: Sequence[str],
) -> list[Path]:
    """table.md, table.csv and per_game.csv in this folder; return where they are."""
    make_folder(out)
    texts = {
        "table.md": markdown(rows, by, recent, notes),
        "table.csv": table_csv(rows),
        "per_game.csv": per_game_csv(games),
    }
    for name, text in texts.items():
        write_whole(out / name, text.encode())
    return [out / name for name in texts]


def markdown(rows: Sequence[Row], by: Normaliser, recent: int, notes: Sequence[str]) -> str:
    """The table as a page of Markdown."""
    heads, heading = headings(recent), title(rows, by)
    shown = len(heads) if any(row.paper for row in rows) else len(heads) - len(PAPER)
    table = markdown_table(heads[:shown], [cells(row)[:shown] for row in rows])
    lines = [f"# {heading[0].upper()}{heading[1:]}", "", table, "", *(f"- {note}" for note in notes), ""]
    return "\n".join(lines)


def cells(row: Row, kinds: Sequence[str] = KINDS) -> list[str]:
    paper = [cell_text(row.paper.get(steps)) for steps in PAPER]
    return [row.agent, *(cell_text(getattr(row, kind)) for kind in kinds), *paper]


def table_csv(rows: Sequence[Row]) -> str:
    names = [*KINDS, *(f"paper_{steps.lower()}" for steps in PAPER)]
    heads = [f"{name}_{part}" for name in names for part in ("median_percent", "games_better")]
    lines: list[list] = []
    for row in rows:
        found = [*(getattr(row, kind) for kind in KINDS), *(row.paper.get(steps) for steps in PAPER)]
        values = [value for cell in found for value in (cell or ("", ""))]
        lines.append([row.agent, row.games, row.seeds, row.evaluations, *values])
    return csv_table(["agent", "games", "seeds", "evaluations", *heads], lines)


def per_game_csv(rows: Mapping[str, Sequence[GameRow]]) -> str:
    heads = [f"{kind}_{part}" for kind in KINDS for part in ("score", "improvement_percent")]
    lines: list[list] = []
    for row in (row for games in rows.values() for row in games):
        pairs = [(getattr(row.score, kind), getattr(row.improvement, kind)) for kind in KINDS]
        lines.append([row.agent, row.game, *("" if v is None else v for pair in pairs for v in pair)])
    return csv_table(["agent", "game", *heads], lines)


def _improvement(game: str, end: Ending, by: Normaliser) -> Ending:
    scores = {kind: getattr(end, kind) for kind in KINDS}
    found: dict[str, Any] = {
        kind: None if score is None else by.improvement(game, score) for kind, score in scores.items()
    }
    return Ending(**found)


def _cell(games: Sequence[GameRow], kind: str, by: Normaliser) -> Cell | None:
    scores = {row.game: getattr(row.score, kind) for row in games}
    if None in scores.values():
        return None
    median = statistics.median(100 * by.normalised(game, score) for game, score in scores.items())
    return Cell(median, sum(by.is_better(game, score) for game, score in scores.items()))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
