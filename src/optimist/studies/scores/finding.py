"""What a table of scores says: Table 1 of the paper, its games, and aggregates with intervals.

`best` is the paper's measure: in each game, the best iteration of the mean over seeds. It is a maximum over
many evaluations, chosen by the same seeds that it scores. For `cross` the other seeds choose the iteration;
for `chosen`, `optimist select` chooses it by the log alone. The last evaluation, the mean of the last few and
the mean of all (`area`) need no choice.
"""

import re
import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from optimist.data.disk.files import make_folder, write_whole
from optimist.studies.plan import WHOLE
from optimist.studies.scores import intervals
from optimist.studies.scores.curves import RECENT, ScoreFile
from optimist.studies.scores.normalisation import KINDS, Normaliser, kind_title, paper_table, scores_by_kind
from optimist.studies.sheet import Cell, Sheet, as_markdown, number, records_csv

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


@dataclass(frozen=True)
class Finding:
    """The results on one table of scores; in a study, on one part of the data, read at one number of gradient
    steps."""

    file: ScoreFile  # the complete games
    by: Normaliser
    left_out: Mapping[str, str] = field(default_factory=dict)  # the other games, each with the reason
    name: str = WHOLE  # of its folder, "10-5x"
    part: str = WHOLE
    reading: str = WHOLE  # "1X"; "all" is the end of the runs
    longest: bool = True  # is it the reading with the most steps? It contains the others
    recent: int = RECENT  # evaluations in the mean of the last ones
    whole_log: bool = True  # did the agents learn from whole logs, as the paper's did?
    paired: bool = False  # did run i of every agent learn from the same log?

    @cached_property
    def games(self) -> dict[str, list[GameRow]]:
        """The games of each agent, the least improved first, as in Figure 4."""
        rows: dict[str, list[GameRow]] = {}
        for agent, by_game in self.file.agents.items():
            rows[agent] = []
            for game, seeds in by_game.items():
                by_kind = scores_by_kind(seeds, self.recent, self.file.chosen_of(agent, game))
                means = {kind: statistics.fmean(each) for kind, each in by_kind.items()}
                gains = {kind: self.by.improvement(game, mean) for kind, mean in means.items()}
                rows[agent].append(GameRow(agent, game, means, gains))
            rows[agent].sort(key=lambda row: (row.improvement["best"], row.game))
        return rows

    @property
    def game_rows(self) -> list[GameRow]:
        return [row for rows in self.games.values() for row in rows]

    @cached_property
    def rows(self) -> list[AgentRow]:
        """A row per agent, in the order of the file; after whole logs with the paper's numbers."""
        comparable = self.whole_log and self.by.yardstick == "DQN"
        rows = []
        for agent, games in self.games.items():
            seeds = next(iter(self.file.agents[agent].values()))
            shared = [kind for kind in KINDS if all(kind in row.score for row in games)]
            medians = {
                kind: 100 + statistics.median(row.improvement[kind] for row in games) for kind in shared
            }
            wins = {
                kind: sum(self.by.is_better(row.game, row.score[kind]) for row in games) for kind in shared
            }
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

    @property
    def evaluations(self) -> int:
        return max(row.evaluations for row in self.rows)

    @cached_property
    def scores(self) -> dict[str, dict[str, intervals.Matrix]]:
        return intervals.matrices(self.file, self.by, self.recent)

    @cached_property
    def certainty(self) -> list[intervals.Certainty]:
        return intervals.rows(self.scores, paired=self.paired)

    def table(self, kinds: Collection[str] = KINDS) -> Sheet:
        """Table 1, with columns for the paper's numbers if it has any, and the games that are left out."""

        def median(row: AgentRow, kind: str) -> Cell:
            if kind not in row.median_percent:
                return Cell("")
            median = row.median_percent[kind]
            return Cell(f"{median:.1f}% / {row.games_better[kind]}", median)

        rows, notes = self.rows, self._notes()
        if self.left_out:
            gaps = ", ".join(f"{game} ({gap})" for game, gap in self.left_out.items())
            notes.append(f"left out of every number: {gaps}")
        few = min(self.recent, self.evaluations)
        shown = [kind for kind in (*kinds, *PAPER) if any(kind in row.median_percent for row in rows)]
        cells = [[row.agent, *(median(row, kind) for kind in shown)] for row in rows]
        heads = ["agent", *(kind if kind in PAPER else kind_title(kind, None, few) for kind in shown)]
        games = f"{rows[0].games} game{'s' * (rows[0].games != 1)}"
        title = f"median normalised score / games > {self.by.yardstick}, of {games}"
        return Sheet(title, heads, cells, notes)

    def _notes(self) -> list[str]:
        """Notes that explain the table."""
        rows, by, kinds = self.rows, self.by, {kind for row in self.rows for kind in row.median_percent}
        counts = sorted({row.evaluations for row in rows})
        looks = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} (more are an advantage)"
        notes = [
            f"seeds: {rows[0].seeds}; best: each game's best of {looks} evaluations of the mean over seeds",
            "cross-chosen best: each seed is scored at the evaluation that is best for the other seeds",
            f"of random play and {by.yardstick} the worse is 0 and the better 100%: {by.provenance}",
        ]
        if "chosen" in kinds:
            notes.append(
                "chosen offline: each seed is scored at the evaluation that optimist select chose by its log"
            )
        if kinds & {*PAPER}:
            notes.append(
                "the paper's numbers: best, over 60 Atari games and 5 seeds, normalised by its own scores"
            )
        return notes

    def game_table(self, kinds: Collection[str] = KINDS) -> Sheet:
        """The average returns of agents in games, and their improvement over the yardstick."""
        recent = min(self.recent, self.evaluations)
        shown = [kind for kind in kinds if any(kind in row.score for row in self.game_rows)]
        cells = []
        for row in self.game_rows:
            numbers = []
            for score, gain in ((row.score.get(kind), row.improvement.get(kind)) for kind in shown):
                numbers.append(Cell("") if score is None else Cell(number(score), score))
                numbers.append(Cell("") if gain is None else Cell(f"{gain:+,.1f}%", gain))
            cells.append([row.agent, row.game, *numbers])
        titles = [kind_title(kind, None, recent) for kind in shown]
        heads = ["agent", "game", *(head for title in titles for head in (title, f"{title}, gain"))]
        note = (
            "average returns, mean over seeds; gain: the improvement of the normalised score over "
            f"{self.by.yardstick}, as in Figure 4"
        )
        return Sheet("game by game", heads, cells, [note])

    def write(self, folder: Path) -> list[Path]:
        """Write Table 1, its games and the aggregates into a folder; return their paths."""
        texts = {
            "table.md": as_markdown(self.table()),
            "table.csv": records_csv(self.rows),
            "per_game.csv": records_csv(self.game_rows),
            "aggregates.csv": records_csv(self.certainty),
        }
        make_folder(folder)
        for name, text in texts.items():
            write_whole(folder / name, text.encode())
        return [folder / name for name in texts]


def paper_numbers(agent: str) -> dict[str, tuple[float, int]]:
    """Median and games in the paper of an agent of this name, such as "qr_dqn" or "DQN (Adam) (1X)"."""

    def plain(name: str) -> str:
        return re.sub(r"[^a-z0-9]", "", name.lower())

    return {
        f"paper, {row['steps']}": (float(row["median_percent"]), int(row["games_better"]))
        for row in paper_table()
        if plain(agent) in (plain(row["agent"]), plain(row["agent"] + row["steps"]))
    }
