"""Table 1 of the paper: each agent's median over games and the games it wins, beside the paper's numbers.

`best` is the paper's measure: in each game, the best iteration of the mean over seeds. It is a maximum over
many evaluations, chosen by the same seeds that it scores. For `cross` the other seeds choose the iteration;
for `chosen`, `optimist select` chooses it by the log alone. The last evaluation, the mean of the last few and
the mean of all (`area`) need no choice.
"""

import re
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from optimist.studies.scores import reference
from optimist.studies.scores.curves import RECENT
from optimist.studies.scores.normalisation import KINDS, Normaliser, kind_title, scores_by_kind
from optimist.studies.scores.score_files import ScoreFile
from optimist.studies.sheet import Cell, Sheet, number

PAPER = ("paper, 1X", "paper, 5X")  # its kinds: the gradient steps of online DQN, and five times as many


@dataclass(frozen=True)
class GameRow:
    """One agent in one game, by kind of score: the mean over seeds, and its improvement in percent."""

    agent: str
    game: str
    score: Mapping[str, float]
    improvement: Mapping[str, float]


@dataclass(frozen=True)
class AgentRow:
    """One agent over all games, by kind of score, among them the paper's: the median of the normalised score,
    and the number of games above the yardstick."""

    agent: str
    games: int
    seeds: int
    evaluations: int
    median_percent: Mapping[str, float]
    games_better: Mapping[str, int]


def per_game(scores: ScoreFile, by: Normaliser, recent: int) -> dict[str, list[GameRow]]:
    """The games of each agent, the least improved first, as in Figure 4."""
    rows: dict[str, list[GameRow]] = {}
    for agent, by_game in scores.agents.items():
        rows[agent] = []
        for game, seeds in by_game.items():
            by_kind = scores_by_kind(seeds, recent, scores.chosen_of(agent, game))
            means = {kind: statistics.fmean(each) for kind, each in by_kind.items()}
            gains = {kind: by.improvement(game, mean) for kind, mean in means.items()}
            rows[agent].append(GameRow(agent, game, means, gains))
        rows[agent].sort(key=lambda row: (row.improvement["best"], row.game))
    return rows


def table_one(
    scores: ScoreFile, by: Normaliser, games_of: Mapping[str, Sequence[GameRow]], *, whole_log: bool
) -> list[AgentRow]:
    """A row per agent, in the order of the file; `whole_log` adds the paper's numbers."""
    comparable = whole_log and by.yardstick == "DQN"
    rows = []
    for agent, games in games_of.items():
        seeds = next(iter(scores.agents[agent].values()))
        shared = [kind for kind in KINDS if all(kind in row.score for row in games)]
        medians = {kind: 100 + statistics.median(row.improvement[kind] for row in games) for kind in shared}
        wins = {kind: sum(by.is_better(row.game, row.score[kind]) for row in games) for kind in shared}
        paper = paper_numbers(agent) if comparable else {}
        rows.append(
            AgentRow(
                agent=agent,
                games=len(games),
                seeds=len(seeds),
                evaluations=len(next(iter(seeds.values()))),
                median_percent=medians | {kind: median for kind, (median, _) in paper.items()},
                games_better=wins | {kind: better for kind, (_, better) in paper.items()},
            )
        )
    return rows


def paper_numbers(agent: str) -> dict[str, tuple[float, int]]:
    """Median and games in the paper of an agent of this name, such as "qr_dqn" or "DQN (Adam) (1X)"."""
    plain = _plain(agent)
    return {
        f"paper, {row['steps']}": (float(row["median_percent"]), int(row["games_better"]))
        for row in reference.paper_table()
        if plain in (_plain(row["agent"]), _plain(row["agent"] + row["steps"]))
    }


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def sheet(
    rows: Sequence[AgentRow],
    by: Normaliser,
    recent: int = RECENT,
    *,
    kinds: Collection[str] = KINDS,
    left_out: Sequence[str] = (),
) -> Sheet:
    """The table to print, with columns for the paper's numbers if it has any."""
    games = f"{rows[0].games} game{'s' * (rows[0].games != 1)}"
    few = min(recent, max(row.evaluations for row in rows))
    shown = [kind for kind in (*kinds, *PAPER) if any(kind in row.median_percent for row in rows)]
    cells = [[row.agent, *(_median(row, kind) for kind in shown)] for row in rows]
    titles = [kind if kind in PAPER else kind_title(kind, None, few) for kind in shown]
    title = f"median normalised score / games > {by.yardstick}, of {games}"
    return Sheet(title, ["agent", *titles], cells, [*notes(rows, by), *left_out])


def _median(row: AgentRow, kind: str) -> Cell:
    if kind not in row.median_percent:
        return Cell("")
    median = row.median_percent[kind]
    return Cell(f"{median:.1f}% / {row.games_better[kind]}", median)


def per_game_sheet(
    rows: Sequence[GameRow], by: Normaliser, kinds: Collection[str] = KINDS, recent: int = RECENT
) -> Sheet:
    """The average returns of agents in games, and their improvement over the yardstick."""
    shown = [kind for kind in kinds if any(kind in row.score for row in rows)]
    cells = []
    for row in rows:
        pairs = [(row.score.get(kind), row.improvement.get(kind)) for kind in shown]
        numbers = [each for score, gain in pairs for each in (_cell(score), _cell(gain, "%"))]
        cells.append([row.agent, row.game, *numbers])
    titles = [kind_title(kind, None, recent) for kind in shown]
    heads = ["agent", "game", *(head for title in titles for head in (title, f"{title}, gain"))]
    note = (
        "average returns, mean over seeds; gain: the improvement of the normalised score over "
        f"{by.yardstick}, as in Figure 4"
    )
    return Sheet("game by game", heads, cells, [note])


def _cell(value: float | None, unit: str = "") -> Cell:
    if value is None:
        return Cell("")
    return Cell(f"{value:+,.1f}{unit}" if unit else number(value), value)


def notes(rows: Sequence[AgentRow], by: Normaliser) -> list[str]:
    """Notes that explain the table."""
    counts = sorted({row.evaluations for row in rows})
    looks = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} (more are an advantage)"
    lines = [
        f"seeds: {rows[0].seeds}; best: each game's best of {looks} evaluations of the mean over seeds",
        "cross-chosen best: each seed is scored at the evaluation that is best for the other seeds",
        f"of random play and {by.yardstick} the worse is 0 and the better 100%: {by.provenance}",
    ]
    if any("chosen" in row.median_percent for row in rows):
        lines.append(
            "chosen offline: each seed is scored at the evaluation that optimist select chose by its log"
        )
    if any(kind in row.median_percent for row in rows for kind in PAPER):
        lines.append(
            "the paper's numbers: best, over 60 Atari games and 5 seeds, normalised by its own scores"
        )
    return lines
