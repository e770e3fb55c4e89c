"""Reads tables of scores, one row per game, agent, seed and iteration, and finds incomplete games."""

import csv
import gzip
import math
import string
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from optimist.errors import DataError, UsageError, did_you_mean, some_of
from optimist.studies.scores.curves import Curve

Seeds = Mapping[int, Curve]  # seed -> iteration -> score
COLUMNS = ("game", "agent", "seed", "score")
AXES = ("iteration", "step")  # the column that counts evaluations; without one, each seed has one score
NAMED = 3  # incomplete games that a message names; it counts the others


def same_steps(seeds: Seeds) -> list[int]:
    """The steps at which every seed was evaluated; DataError if they differ."""
    steps, *others = map(sorted, seeds.values())
    if any(other != steps for other in others):
        raise DataError(
            f"the seeds {sorted(seeds)} were evaluated at different steps: add the missing scores, "
            "or leave the game out"
        )
    return steps


def score_table(seeds: Seeds) -> np.ndarray:
    """The scores of one game, in the order of seeds and steps: (seeds, evaluations)."""
    steps = same_steps(seeds)
    return np.array([[seeds[seed][step] for step in steps] for seed in sorted(seeds)])


@dataclass(frozen=True)
class ScoreFile:
    """Scores by agent, game, seed and iteration, and the name of the iteration column."""

    agents: Mapping[str, Mapping[str, Seeds]]
    axis: str
    chosen: Mapping[str, Mapping[str, Mapping[int, int]]] = field(default_factory=dict)  # see `chosen_of`

    def chosen_of(self, agent: str, game: str) -> Mapping[int, int]:
        """The iteration of each seed that was chosen by the log alone; empty if none was."""
        return self.chosen.get(agent, {}).get(game, {})

    @property
    def games(self) -> list[str]:
        return list(dict.fromkeys(game for by_game in self.agents.values() for game in by_game))

    @property
    def seeds(self) -> list[int]:
        return sorted(
            {seed for by_game in self.agents.values() for curves in by_game.values() for seed in curves}
        )

    def gaps(self) -> dict[str, str]:
        """The incomplete games, each with the first missing agent, seed or evaluation."""
        every = {
            agent: {step for curves in by_game.values() for curve in curves.values() for step in curve}
            for agent, by_game in self.agents.items()
        }
        found = {game: self._gap(game, seeds, every) for game, seeds in self._seeds_by_game().items()}
        return {game: gap for game, gap in found.items() if gap}

    def _seeds_by_game(self) -> dict[str, set[int]]:
        """The seeds that every agent needs in each game: those of its agents, which are others than in
        another game if only the best players are kept; or those of all games if it has fewer than another."""
        found = {
            game: {seed for by_game in self.agents.values() for seed in by_game.get(game, ())}
            for game in self.games
        }
        most = max(map(len, found.values()), default=0)
        return {game: mine if len(mine) == most else set(self.seeds) for game, mine in found.items()}

    def without(self, games: Mapping[str, str]) -> "ScoreFile":
        """The scores without these games, for every agent: medians are compared over the same games."""
        kept = {
            agent: {game: curves for game, curves in by_game.items() if game not in games}
            for agent, by_game in self.agents.items()
        }
        return ScoreFile(kept, self.axis, self.chosen)

    def _gap(self, game: str, seeds: set[int], every: Mapping[str, set[int]]) -> str:
        for agent, by_game in self.agents.items():
            if game not in by_game:
                return f"none of {agent}"
            missing = seeds - set(by_game[game])
            if missing:
                return f"{agent} lacks seed {min(missing)}"
            for seed, curve in by_game[game].items():
                lacking = every[agent] - set(curve)
                if lacking:
                    return f"{agent}, seed {seed} lacks {self.axis} {min(lacking)}"
        return ""


def read_scores(*paths: Path) -> ScoreFile:
    """The scores of one file, or of several: the agents of the second are called "REM (B)"."""
    files = [_read(path) for path in paths]
    if len({file.axis for file in files}) > 1:
        raise DataError(f"{paths[0]} counts {files[0].axis}s and another file does not: rename the column")
    letters = ["", *(f" ({letter})" for letter in string.ascii_uppercase[1:])]
    if len(files) > len(letters):
        raise UsageError(f"{len(files)} files: name at most {len(letters)}")
    named = zip(letters, files, strict=False)
    agents = {agent + letter: games for letter, file in named for agent, games in file.agents.items()}
    return ScoreFile(agents, files[0].axis)


def _read(path: Path) -> ScoreFile:
    """Every row of the file; raises DataError for a row that cannot be read or occurs twice."""
    rows = read_rows(path)
    if not rows:
        raise DataError(f"{path} holds no scores: it needs rows under game,agent,seed,iteration,score")
    axis = _axis(path, list(rows[0][1]))
    agents: dict[str, dict[str, dict[int, Curve]]] = defaultdict(lambda: defaultdict(dict))
    for line, row in rows:
        place = f"{path}, line {line}"
        for column in ("game", "agent"):
            if not row[column]:
                raise DataError(f"{place} has no {column}: correct the row")
        seed, iteration = _whole(row["seed"], place), _whole(row[axis], place) if axis in row else 0
        curve = agents[row["agent"]][row["game"]].setdefault(seed, {})
        if iteration in curve:
            raise DataError(
                f"{place} is the second score of {row['agent']} on {row['game']} "
                f"(seed {seed}, {axis} {iteration}): keep one of the two"
            )
        curve[iteration] = finite(row["score"], place)
    return ScoreFile({agent: dict(by_game) for agent, by_game in agents.items()}, axis)


def complete(scores: ScoreFile, *, leave_out: bool) -> tuple[ScoreFile, dict[str, str]]:
    """The scores of the complete games, and the games that were left out."""
    gaps = scores.gaps()
    if gaps and not leave_out:
        raise DataError(
            f"{incomplete_games(gaps, len(scores.games))}: add the rows, or leave these games out "
            "with --incomplete leave-out"
        )
    if len(gaps) == len(scores.games):
        raise DataError(f"{incomplete_games(gaps, len(scores.games))}: no game is left; add the rows")
    return scores.without(gaps), gaps


def incomplete_games(gaps: Mapping[str, str], games: int) -> str:
    """'2 of 60 games are incomplete: Pong (REM lacks seed 3), Qbert (none of REM)'."""
    named = some_of([f"{game} ({gap})" for game, gap in gaps.items()], NAMED)
    verb = "is" if len(gaps) == 1 else "are"
    return f"{len(gaps)} of {games} games {verb} incomplete: {named}"


def read_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with their line numbers; a row must have as many cells as the header."""
    if not path.exists():
        raise DataError(f"{path} does not exist; name a CSV file with scores")
    try:
        with _opened(path) as file:
            reader = csv.DictReader(file, strict=True, skipinitialspace=True)
            rows = [(reader.line_num, row) for row in reader]
            header = list(reader.fieldnames or ())
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, EOFError) as problem:
        raise DataError(f"{path} is not a CSV file in UTF-8 ({problem}): save it as one") from None
    if len(set(header)) < len(header):
        raise DataError(f"{path} has two columns with the same name: keep one of them")
    for line, row in rows:
        if None in row or None in row.values():
            raise DataError(f"{path}, line {line} has more or fewer cells than the header: correct the row")
    return [(line, {name.strip(): value.strip() for name, value in row.items()}) for line, row in rows]


def _opened(path: Path) -> TextIO:
    """A CSV file; pages have large ones compressed."""
    open_text: Any = gzip.open if path.suffix == ".gz" else open
    return open_text(path, "rt", newline="", encoding="utf-8-sig")


def finite(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f'{place} has the score "{text}": it needs a finite number')
    return value


def _axis(path: Path, columns: list[str]) -> str:
    """The column that counts the evaluations; raises DataError for a missing or unknown column."""
    axes = [axis for axis in AXES if axis in columns]
    if len(axes) == 2:
        raise DataError(f"{path} has both iteration and step: keep the one that counts the evaluations")
    for column in COLUMNS:
        if column not in columns:
            raise DataError(f'{path} has no column "{column}": it needs game,agent,seed,iteration,score')
    for column in columns:
        if column not in (*COLUMNS, *axes):
            raise DataError(
                f'{path} has an unknown column "{column}": {did_you_mean(column, (*COLUMNS, *AXES))}'
            )
    return axes[0] if axes else AXES[0]


def _whole(text: str, place: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise DataError(f'{place} has "{text}": it needs a whole number, 0 or more')
    return value
