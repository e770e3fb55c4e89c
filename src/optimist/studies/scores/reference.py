"""Published and measured scores of the 60 Atari games and the paper's own results, shipped with the package;
`reference/README.md` names the source of each column."""

import csv
from functools import cache
from importlib.resources import files

from optimist.errors import UsageError, did_you_mean

FOLDER = files("optimist.studies.scores").joinpath("reference")


@cache
def published() -> dict[str, dict[str, str]]:
    """The row of published scores of each game."""
    return _rows("atari_reference_scores.csv")


@cache
def random_with_sticky_actions() -> dict[str, float]:
    """The mean score of uniformly random play of each game, measured here with the paper's protocol."""
    return {game: float(row["mean"]) for game, row in _rows("atari_random_sticky.csv").items()}


@cache
def paper_table() -> list[dict[str, str]]:
    """The rows of the paper's Table 1 and of its appendix: agent, steps, median_percent, games_better."""
    return _lines("paper_table_1.csv")


def reference_score(game: str, column: str) -> float:
    """One published score, such as `reference_score("Pong", "dqn_nature_eval_sgi")`."""
    if game not in published():
        raise UsageError(f'no reference scores of "{game}": {did_you_mean(game, published())}')
    row = published()[game]
    if column not in row or column in ("game", "random_human_source"):
        raise UsageError(f'no reference score "{column}": {did_you_mean(column, row)}')
    return float(row[column])


def _rows(name: str) -> dict[str, dict[str, str]]:
    return {row["game"]: row for row in _lines(name)}


def _lines(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(FOLDER.joinpath(name).read_text(encoding="utf-8").splitlines()))
