"""What a table of scores says: the games of each agent, Table 1, and aggregates with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from optimist.data.disk.files import make_folder, write_whole
from optimist.studies.plan import WHOLE
from optimist.studies.scores import intervals, table_one
from optimist.studies.scores.curves import RECENT
from optimist.studies.scores.normalisation import Normaliser
from optimist.studies.scores.score_files import ScoreFile
from optimist.studies.sheet import Sheet, as_markdown, records_csv


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
    def games(self) -> dict[str, list[table_one.GameRow]]:
        return table_one.per_game(self.file, self.by, self.recent)

    @property
    def game_rows(self) -> list[table_one.GameRow]:
        return [row for rows in self.games.values() for row in rows]

    @cached_property
    def rows(self) -> list[table_one.AgentRow]:
        return table_one.table_one(self.file, self.by, self.games, whole_log=self.whole_log)

    @property
    def evaluations(self) -> int:
        return max(row.evaluations for row in self.rows)

    @cached_property
    def scores(self) -> dict[str, dict[str, intervals.Matrix]]:
        return intervals.matrices(self.file, self.by, self.recent)

    @cached_property
    def certainty(self) -> list[intervals.Certainty]:
        return intervals.rows(self.scores, paired=self.paired)

    def table(self, **options) -> Sheet:
        """Table 1, with the games that are left out."""
        gaps = ", ".join(f"{game} ({gap})" for game, gap in self.left_out.items())
        left_out = [f"left out of every number: {gaps}"] if gaps else []
        return table_one.sheet(self.rows, self.by, self.recent, left_out=left_out, **options)

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
