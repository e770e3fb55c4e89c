"""Table 1 of the paper: each agent's median over games and the games it wins, beside the paper's numbers.

`best` is the paper's measure: in each game, the best iteration of the mean over seeds. It is a maximum over
many evaluations, chosen by the same seeds that it scores. For `cross` the other seeds choose the iteration;
for `chosen`, `optimist select` chooses it by the log alone. The last evaluation, the mean of the last few and
the mean of all (`area`) need no choice.
"""

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from optimist.data.disk.files import make_folder, write_whole
from optimist.studies.scores import reference
from optimist.studies.scores.curves import RECENT
from optimist.studies.scores.normalisation import KINDS, Ending, Normaliser, ending, seed_means
from optimist.studies.scores.score_files import ScoreFile
from optimist.studies.sheet import Cell, Sheet, as_csv, as_markdown, number

MAIN = ("best", "cross", "chosen", "last")  # for tables without room for all
PAPER = ("1X", "5X")  # the gradient steps of online DQN, and five times as many


class Median(NamedTuple):
    """Median over games of the normalised score in percent, and the number of games above the yardstick."""

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
class AgentRow:
    """One agent over all games; `paper` has its numbers in the paper, by gradient steps (1X, 5X)."""

    agent: str
    games: int
    seeds: int
    evaluations: int
    best: Median
    cross: Median | None
    last: Median
    mean_of_last: Median
    area: Median
    chosen: Median | None
    paper: Mapping[str, Median]


def per_game(scores: ScoreFile, by: Normaliser, recent: int = RECENT) -> dict[str, list[GameRow]]:
    """The games of each agent, the least improved first, as in Figure 4."""
    rows: dict[str, list[GameRow]] = {}
    for agent, by_game in scores.agents.items():
        seed_means(by_game)  # raises if seeds were evaluated at different steps
        ends = {game: ending(seeds, recent, scores.chosen_of(agent, game)) for game, seeds in by_game.items()}
        rows[agent] = sorted(
            (GameRow(agent, game, end, _improvement(game, end, by)) for game, end in ends.items()),
            key=lambda row: (row.improvement.best, row.game),
        )
    return rows


def table_one(
    scores: ScoreFile, by: Normaliser, recent: int = RECENT, *, whole_log: bool = True
) -> list[AgentRow]:
    """A row per agent, in the order of the file; `whole_log` adds the paper's numbers."""
    comparable = whole_log and by.yardstick == "DQN"
    rows = []
    for agent, games in per_game(scores, by, recent).items():
        curves = next(iter(scores.agents[agent].values()))
        medians: dict[str, Any] = {kind: _median(games, kind, by) for kind in KINDS}
        rows.append(
            AgentRow(
                agent=agent,
                games=len(games),
                seeds=len(curves),
                evaluations=len(next(iter(curves.values()))),
                paper=paper_medians(agent) if comparable else {},
                **medians,
            )
        )
    return rows


def paper_medians(agent: str) -> dict[str, Median]:
    """The paper's numbers for an agent of this name, such as "qr_dqn", "REM" or "DQN (Adam) (1X)"."""
    plain = _plain(agent)
    found = {}
    for row in reference.paper_table():
        if plain in (_plain(row["agent"]), _plain(row["agent"] + row["steps"])):
            found[row["steps"]] = Median(float(row["median_percent"]), int(row["games_better"]))
    return found


def sheet(
    rows: Sequence[AgentRow],
    by: Normaliser,
    recent: int = RECENT,
    *,
    kinds: Sequence[str] = KINDS,
    left_out: Sequence[str] = (),
) -> Sheet:
    """The table to print, with columns for the paper's numbers if it has any."""
    games = f"{rows[0].games} game{'s' * (rows[0].games != 1)}"
    paper = PAPER if any(row.paper for row in rows) else ()
    few = min(recent, max(row.evaluations for row in rows))
    kinds = _known(kinds, rows)
    titles = [kind_title(kind, None, few) for kind in kinds]
    return Sheet(
        f"median normalised score / games > {by.yardstick}, of {games}",
        ["agent", *titles, *(f"paper, {steps}" for steps in paper)],
        [
            [
                row.agent,
                *(_shown(getattr(row, kind)) for kind in kinds),
                *(_shown(row.paper.get(steps)) for steps in paper),
            ]
            for row in rows
        ],
        [*notes(rows, by), *left_out],
    )


def per_game_sheet(games: Mapping[str, Sequence[GameRow]], by: Normaliser, recent: int = RECENT) -> Sheet:
    """The average returns of every agent in every game, and their improvement over the yardstick."""
    every = [row for mine in games.values() for row in mine]
    kinds = _known(MAIN, [row.score for row in every])
    titles = [kind_title(kind, None, recent) for kind in kinds]
    rows = []
    for row in every:
        pairs = [(getattr(row.score, kind), getattr(row.improvement, kind)) for kind in kinds]
        numbers = [(_number(score, number), _number(gain, "{:+,.1f}%".format)) for score, gain in pairs]
        rows.append([row.agent, row.game, *(cell for pair in numbers for cell in pair)])
    heads = ["agent", "game", *(head for title in titles for head in (title, f"{title}, gain"))]
    note = (
        "average returns, mean over seeds; gain: the improvement of the normalised score over "
        f"{by.yardstick}, as in Figure 4"
    )
    return Sheet("game by game", heads, rows, [note])


def improvement_sheet(agent: str, rows: Sequence[GameRow], by: Normaliser, recent: int = RECENT) -> Sheet:
    """One agent's games, the least improved first."""
    kinds = _known(KINDS, [row.score for row in rows])
    titles = [kind_title(kind, None, recent) for kind in kinds]
    shown = [
        [row.game, *(_number(getattr(row.improvement, kind), "{:+,.1f}".format) for kind in kinds)]
        for row in rows
    ]
    return Sheet(f"{agent}: improvement over {by.yardstick} in %", ["game", *titles], shown)


def kind_title(kind: str, evaluations: int | None, recent: int = RECENT) -> str:
    """'best of 50', 'cross-chosen best', 'last', 'mean of last 3' (or of as many as there are)."""
    recent = min(recent, evaluations or recent)
    return {
        "best": f"best of {evaluations}" if evaluations else "best",
        "cross": "cross-chosen best",
        "last": "last",
        "mean_of_last": f"mean of last {recent}",
        "area": "mean of all",
        "chosen": "chosen offline",
    }[kind]


def notes(rows: Sequence[AgentRow], by: Normaliser) -> list[str]:
    """Notes that explain the table."""
    counts = sorted({row.evaluations for row in rows})
    looks = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} (more are an advantage)"
    lines = [
        f"seeds: {rows[0].seeds}; best: each game's best of {looks} evaluations of the mean over seeds",
        "cross-chosen best: each seed is scored at the evaluation that is best for the other seeds",
        f"of random play and {by.yardstick} the worse is 0 and the better 100%: {by.provenance}",
    ]
    if any(row.chosen for row in rows):
        lines.append(
            "chosen offline: each seed is scored at the evaluation that optimist select chose by its log"
        )
    if any(row.paper for row in rows):
        lines.append(
            "the paper's numbers: best, over 60 Atari games and 5 seeds, normalised by its own scores"
        )
    return lines


def write(
    out: Path,
    rows: Sequence[AgentRow],
    games: Mapping[str, Sequence[GameRow]],
    by: Normaliser,
    recent: int = RECENT,
    left_out: Sequence[str] = (),
) -> list[Path]:
    """Write table.md, table.csv and per_game.csv in this folder; return their paths."""
    make_folder(out)
    texts = {
        "table.md": as_markdown(sheet(rows, by, recent, left_out=left_out)),
        "table.csv": table_csv(rows),
        "per_game.csv": per_game_csv(games),
    }
    for name, text in texts.items():
        write_whole(out / name, text.encode())
    return [out / name for name in texts]


def table_csv(rows: Sequence[AgentRow]) -> str:
    kinds = _known(KINDS, rows)
    names = [*kinds, *(f"paper_{steps.lower()}" for steps in PAPER)]
    heads = [f"{name}_{part}" for name in names for part in ("median_percent", "games_better")]
    lines: list[list] = []
    for row in rows:
        found = [*(getattr(row, kind) for kind in kinds), *(row.paper.get(steps) for steps in PAPER)]
        values = [value for share in found for value in (share or (None, None))]
        lines.append([row.agent, row.games, row.seeds, row.evaluations, *values])
    return as_csv(Sheet("", ["agent", "games", "seeds", "evaluations", *heads], lines))


def per_game_csv(rows: Mapping[str, Sequence[GameRow]]) -> str:
    every = [row for games in rows.values() for row in games]
    kinds = _known(KINDS, [row.score for row in every])
    heads = [f"{kind}_{part}" for kind in kinds for part in ("score", "improvement_percent")]
    lines: list[list] = []
    for row in every:
        pairs = [(getattr(row.score, kind), getattr(row.improvement, kind)) for kind in kinds]
        lines.append([row.agent, row.game, *(value for pair in pairs for value in pair)])
    return as_csv(Sheet("", ["agent", "game", *heads], lines))


def _known(kinds: Sequence[str], rows: Sequence[Any]) -> list[str]:
    """The kinds without `chosen` if nothing was chosen by a log alone."""
    return [kind for kind in kinds if kind != "chosen" or any(row.chosen is not None for row in rows)]


def _shown(share: Median | None) -> Cell:
    return Cell(f"{share.median:.1f}% / {share.better}", share.median) if share else Cell("")


def _number(value: float | None, shown: Callable[[float], str]) -> Cell:
    return Cell("") if value is None else Cell(shown(value), value)


def _improvement(game: str, end: Ending, by: Normaliser) -> Ending:
    scores = {kind: getattr(end, kind) for kind in KINDS}
    found: dict[str, Any] = {
        kind: None if score is None else by.improvement(game, score) for kind, score in scores.items()
    }
    return Ending(**found)


def _median(games: Sequence[GameRow], kind: str, by: Normaliser) -> Median | None:
    scores = {row.game: getattr(row.score, kind) for row in games}
    if None in scores.values():
        return None
    median = statistics.median(100 * by.normalised(game, score) for game, score in scores.items())
    return Median(median, sum(by.is_better(game, score) for game, score in scores.items()))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
