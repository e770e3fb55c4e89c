"""Learning curves: those of a run, from its episodes.csv, and those of many, from a table of scores."""

import csv
import gzip
import math
import statistics
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from optimist.errors import DataError, RunError, UsageError, command_line, did_you_mean, some_of
from optimist.studies.sheet import Cell, Sheet, number
from optimist.training.storage.rows import EvaluationEpisodes, curves_of, episode_columns

RECENT = 3  # evaluations in "mean of last 3", which reduces the effect of one lucky evaluation
COLUMNS = ("game", "agent", "seed", "score")
AXES = ("iteration", "step")  # the column that counts evaluations; without one, each seed has one score
NAMED = 3  # incomplete games that a message names; it counts the others

Curve = dict[int, float]  # gradient updates done -> average return of that evaluation
Seeds = Mapping[int, Curve]  # by seed


def curves(run: Path) -> dict[int, Curve]:
    """For each seed, the average return at each evaluated step, in order."""
    return averages(episodes(run))


def episodes(run: Path) -> EvaluationEpisodes:
    """All rows of episodes.csv; raises an error for a row that cannot be read."""
    path = run / "episodes.csv"
    if not path.is_file():
        raise RunError(f"{path} is missing: run `{command_line('evaluate', run)}`")
    rows = episode_columns(path)
    if not len(rows.step):
        raise RunError(f"{run} holds no evaluation episodes: run `{command_line('evaluate', run)}`")
    return rows


def averages(played: EvaluationEpisodes) -> dict[int, Curve]:
    """For each seed, the average over the episodes of each evaluation."""
    scores: dict[int, dict[int, list[float]]] = {}
    columns = (played.seed.tolist(), played.step.tolist(), played.score.tolist())
    for seed, step, score in zip(*columns, strict=True):
        scores.setdefault(seed, {}).setdefault(step, []).append(score)
    return {
        seed: {step: statistics.fmean(by_step[step]) for step in sorted(by_step)}
        for seed, by_step in sorted(scores.items())
    }


def mean_curve(by_seed: Seeds) -> Curve:
    """The mean over seeds at the steps that every seed has, so that a missing seed cannot move it."""
    shared = set.intersection(*(set(curve) for curve in by_seed.values()))
    return {step: statistics.fmean(curve[step] for curve in by_seed.values()) for step in sorted(shared)}


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


def sheet(runs: Mapping[str, Seeds], levels: Mapping[str, float | None]) -> Sheet:
    """The average return of every agent over its seeds, and levels of the data such as its best policy."""
    recent = min(RECENT, max(len(curve) for run in runs.values() for curve in run.values()))
    heads = ["", "last", "each seed's best of n", *([f"mean of last {recent}"] if recent > 1 else [])]
    rows: list[list[Any]] = []
    for label, by_seed in runs.items():
        curves = [list(curve.values()) for curve in by_seed.values()]
        best = spread([max(curve) for curve in curves])
        recently = [spread([statistics.fmean(curve[-recent:]) for curve in curves])] if recent > 1 else []
        ends = spread([curve[-1] for curve in curves])
        rows.append([label, ends, Cell(f"{best.text} of {max(map(len, curves))}", best.value), *recently])
    for name, level in levels.items():
        if level is not None:
            rows.append([name, Cell(number(level), level), *[""] * (len(heads) - 2)])
    return Sheet("average return, mean ± sd over seeds", heads, rows)


def spread(values: Sequence[float]) -> Cell:
    """'9.1 ± 0.8': mean and sample standard deviation, with the same decimals; of one value only the mean."""
    mean = statistics.fmean(values)
    shown = number(mean)
    if len(values) > 1:
        decimals = len(shown.partition(".")[2])
        shown += f" ± {statistics.stdev(values):,.{decimals}f}"
    return Cell(shown, mean)


def estimators_of(rows: Sequence[dict]) -> list[str]:
    """The names of the estimators that the run logged."""
    from optimist.training.measures import estimators_in  # heavy, and a study's page has none

    return list(dict.fromkeys(name for row in rows for name in estimators_in(row)))


def estimator_sheet(rows: Sequence[dict]) -> Sheet:
    """The first and the last value of each estimator, means over the seeds."""
    from optimist.training.measures import shown, title

    table = []
    for name in estimators_of(rows):
        curves = curves_of(rows, name).values()
        first, last = (float(np.mean([curve.values[at] for curve in curves])) for at in (0, -1))
        table.append([title(name), *(Cell(shown(name, value), value) for value in (first, last))])
    return Sheet("how it went, without an environment", ["estimator", "first", "last"], table)


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

    def gaps(self) -> dict[str, str]:
        """The incomplete games, each with the first missing agent, seed or evaluation.

        Every agent needs the seeds of the others in a game. They are others than in another game if only the
        best players are kept; a game with fewer seeds than another needs those of all games."""
        seeds = {
            game: {seed for by_game in self.agents.values() for seed in by_game.get(game, ())}
            for game in self.games
        }
        most, every = max(map(len, seeds.values()), default=0), set[int]().union(*seeds.values())
        steps = {
            agent: {step for curves in by_game.values() for curve in curves.values() for step in curve}
            for agent, by_game in self.agents.items()
        }

        def gap(game: str, needed: set[int]) -> str:
            for agent, by_game in self.agents.items():
                if game not in by_game:
                    return f"none of {agent}"
                if missing := needed - set(by_game[game]):
                    return f"{agent} lacks seed {min(missing)}"
                for seed, curve in by_game[game].items():
                    if missing := steps[agent] - set(curve):
                        return f"{agent}, seed {seed} lacks {self.axis} {min(missing)}"
            return ""

        gaps = {game: gap(game, mine if len(mine) == most else every) for game, mine in seeds.items()}
        return {game: why for game, why in gaps.items() if why}

    def without(self, games: Mapping[str, str]) -> "ScoreFile":
        """The scores without these games, for every agent: medians are compared over the same games."""
        kept = {
            agent: {game: curves for game, curves in by_game.items() if game not in games}
            for agent, by_game in self.agents.items()
        }
        return ScoreFile(kept, self.axis, self.chosen)


def read_scores(*paths: Path) -> ScoreFile:
    """The scores of one file, or of several: the agents of the second are called "REM (B)"."""
    letters = ["", *(f" ({letter})" for letter in string.ascii_uppercase[1:])]
    if len(paths) > len(letters):
        raise UsageError(f"{len(paths)} files: name at most {len(letters)}")
    agents: dict[str, dict[str, dict[int, Curve]]] = {}
    axes = []
    for path, letter in zip(paths, letters, strict=False):
        rows = read_rows(path)
        if not rows:
            raise DataError(f"{path} holds no scores: it needs rows under game,agent,seed,iteration,score")
        axes.append(axis := _axis(path, list(rows[0][1])))
        for line, row in rows:
            place = f"{path}, line {line}"
            for column in ("game", "agent"):
                if not row[column]:
                    raise DataError(f"{place} has no {column}: correct the row")
            seed, iteration = (_whole(row.get(column, "0"), place) for column in ("seed", axis))
            by_game = agents.setdefault(row["agent"] + letter, {})
            curve = by_game.setdefault(row["game"], {}).setdefault(seed, {})
            if iteration in curve:
                raise DataError(
                    f"{place} is the second score of {row['agent']} on {row['game']} "
                    f"(seed {seed}, {axis} {iteration}): keep one of the two"
                )
            curve[iteration] = finite(row["score"], place)
    if len(set(axes)) > 1:
        raise DataError(f"{paths[0]} counts {axes[0]}s and another file does not: rename the column")
    return ScoreFile(agents, axes[0])


def complete(scores: ScoreFile, *, leave_out: bool) -> tuple[ScoreFile, dict[str, str]]:
    """The scores of the complete games, and the games that were left out."""
    gaps = scores.gaps()
    remedy = "no game is left; add the rows" if len(gaps) == len(scores.games) and leave_out else ""
    if gaps and not leave_out:
        remedy = "add the rows, or leave these games out with --incomplete leave-out"
    if remedy:
        raise DataError(f"{incomplete_games(gaps, len(scores.games))}: {remedy}")
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
    open_text: Any = gzip.open if path.suffix == ".gz" else open  # pages have large ones compressed
    try:
        with open_text(path, "rt", newline="", encoding="utf-8-sig") as file:
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
            hint = did_you_mean(column, (*COLUMNS, *AXES))
            raise DataError(f'{path} has an unknown column "{column}": {hint}')
    return axes[0] if axes else AXES[0]


def _whole(text: str, place: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise DataError(f'{place} has "{text}": it needs a whole number, 0 or more')
    return value
