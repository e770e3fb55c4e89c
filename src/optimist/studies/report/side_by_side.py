"""Compares two studies on one page, for the agents and games that both have."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk.files import make_folder, write_whole
from optimist.errors import UsageError
from optimist.studies.report.page import page
from optimist.studies.report.shared import NAMED, Pair, only_in_one, pairs_of
from optimist.studies.report.study_report import page_command, warnings
from optimist.studies.report.study_tables import rules
from optimist.studies.results.findings import StudyResults, find
from optimist.studies.results.provenance import Difference, Version, differences, read_versions
from optimist.studies.scores import intervals, statistics, table_one
from optimist.studies.scores.normalisation import Normaliser
from optimist.studies.scores.score_files import ScoreFile
from optimist.studies.scores.statistics import Interval
from optimist.studies.sheet import Cell, Sheet, number

KINDS = ("best", "cross", "last")  # each kind has three columns; more kinds would be wider than a screen


def write_side_by_side(path: Path, first: Path, second: Path, by: Normaliser | None = None) -> list[str]:
    """Write the page and return its warnings."""
    names = _names(first, second)
    one, other = find(first, by), find(second, by)
    pairs = pairs_of(one, other, names)
    versions = [read_versions(each.record.jobs, each.out) for each in (one, other)]
    protocol = differences(one.record.jobs, first, other.record.jobs, second)
    warned = [
        *only_in_one(one, other, names),
        *_yardsticks(pairs, one.by, other.by, names),
        *_readings(one, other, names),
        *_choices(one, other, names),
        *_settings_differ(protocol, names),
        *_versions(versions[0], versions[1], names),
        *(f"{names[0]}: {line}" for line in warnings(one, versions[0])),
        *(f"{names[1]}: {line}" for line in warnings(other, versions[1])),
    ]
    command = page_command(first, second, page=path, by=by)
    content = page(
        "side_by_side.html.j2",
        title=f"{names[0]} and {names[1]} side by side",
        studies={names[0]: one.record.title, names[1]: other.record.title},
        warnings=warned,
        tables={
            "aggregates": _aggregates(pairs, one.by, other.by, names),
            "per-game": _per_game(pairs, names),
            **({"protocol": _protocol(protocol, names)} if protocol else {}),
        },
        page_command=command,
    )
    make_folder(path.parent)
    write_whole(path, content)
    return warned


def _names(first: Path, second: Path) -> tuple[str, str]:
    """The names of the folders, or their paths if the names are the same."""
    folders = first.resolve(), second.resolve()  # "." has no name
    if folders[0] == folders[1]:
        raise UsageError(f"{first} and {second} are the same folder: name two studies")
    if folders[0].name == folders[1].name:
        return str(first), str(second)
    return folders[0].name, folders[1].name


def _aggregates(pairs: list[Pair], by: Normaliser, other_by: Normaliser, names: tuple[str, str]) -> Sheet:
    rows = []
    for pair in pairs:
        ones, others = intervals.matrices(pair.first, by), intervals.matrices(pair.second, other_by)
        # Comparing runs needs one normaliser; any gives the same order.
        same = intervals.matrices(pair.second, by)
        for agent in pair.first.agents:
            for kind in (kind for kind in ones if kind in others):
                x, y = ones[kind][agent], others[kind][agent]
                both = [*_three(statistics.iqm, x, y), *_three(statistics.median, x, y)]
                better = _cell(_drawn(_improvement, x, same[kind][agent], limits=statistics.SHARE), x, y)
                rows.append([agent, *_place(pairs, pair), _kind(kind, pair), *both, better])
    heads = [f"{name} {words}" for name in ("IQM", "median") for words in (*names, "difference")]
    notes = [
        f"difference: {names[1]} minus {names[0]}; in brackets 95% stratified bootstrap intervals, "
        f"{intervals.REPETITIONS:,} draws, if both have several seeds",
        "normalised scores over the games that both have; best favours the study with more evaluations",
    ]
    heads = ["agent", *_place_heads(pairs), "score", *heads, f"P({names[1]} better)"]
    return Sheet("over the shared games", heads, _by_agent(rows), notes)


def _per_game(pairs: list[Pair], names: tuple[str, str]) -> Sheet:
    rows = []
    for pair in pairs:
        scores = [_scores(file) for file in (pair.first, pair.second)]
        for agent, game in product(pair.first.agents, pair.first.games):
            one, other = (each[agent, game] for each in scores)
            cells = [cell for kind in KINDS for cell in _both_and_difference(one, other, kind)]
            rows.append([agent, *_place(pairs, pair), game, *cells])
    kinds = [table_one.kind_title(kind, None) for kind in KINDS]
    heads = [f"{kind}, {words}" for kind in kinds for words in (*names, "difference")]
    notes = ["average returns, mean over seeds, not normalised"]
    return Sheet("game by game", ["agent", *_place_heads(pairs), "game", *heads], _by_agent(rows), notes)


def _both_and_difference(one: Any, other: Any, kind: str) -> list[Cell]:
    before, after = getattr(one, kind), getattr(other, kind)
    if before is None or after is None:  # with one seed there is no cross-chosen best
        return [Cell("")] * 3
    cells = [Cell(number(value), value) for value in (before, after)]
    return [*cells, Cell(f"{round(after - before, 2) + 0.0:+,.2f}", after - before)]  # not -0.00


def _by_agent(rows: list[list]) -> list[list]:
    """The rows sorted by agent."""
    agents = list(dict.fromkeys(row[0] for row in rows))
    return sorted(rows, key=lambda row: agents.index(row[0]))


def _scores(file: ScoreFile) -> dict[tuple[str, str], table_one.Ending]:
    return {
        (agent, game): table_one.ending(seeds)
        for agent, by_game in file.agents.items()
        for game, seeds in by_game.items()
    }


def _protocol(found: list[Difference], names: tuple[str, str]) -> Sheet:
    rows = [[each.setting, each.first, each.second, each.where()] for each in found]
    return Sheet("settings that differ", ["setting", *names, "in the runs"], rows)


def _three(statistic, x: intervals.Matrix, y: intervals.Matrix) -> list[Cell]:
    """The statistic of the first, of the second, and their difference."""
    values = [float(statistic(x)), float(statistic(y))]
    between = _drawn(lambda a, b: statistic(b) - statistic(a), x, y)
    return [*(Cell(f"{value:.2f}", value) for value in values), _cell(between, x, y, sign="+")]


def _improvement(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return statistics.probability_of_improvement(y, x)


def _drawn(statistic, x: intervals.Matrix, y: intervals.Matrix, **more) -> Interval:
    return statistics.stratified_bootstrap(statistic, x, y, repetitions=intervals.REPETITIONS, **more)


def _cell(found: Interval, x: intervals.Matrix, y: intervals.Matrix, sign: str = "") -> Cell:
    return intervals.interval_cell(found, min(len(x), len(y)), sign)


def _kind(kind: str, pair: Pair) -> str:
    titles = [intervals.kind_title(kind, count) for count in pair.evaluations]
    return titles[0] if titles[0] == titles[1] else f"{titles[0]} / {titles[1].removeprefix('best ')}"


def _place_heads(pairs: list[Pair]) -> list[str]:
    return ["data, read at"] if len(pairs) > 1 or pairs[0].place else []


def _place(pairs: list[Pair], pair: Pair) -> list[str]:
    return [pair.place] if _place_heads(pairs) else []


def _yardsticks(pairs: list[Pair], one: Normaliser, other: Normaliser, names: tuple[str, str]) -> list[str]:
    """A warning if the studies have different normalisers, as when each measured its own player."""
    lines = []
    for game in dict.fromkeys(game for pair in pairs for game in pair.first.games):
        mine, theirs = one.bounds(game), other.bounds(game)
        if mine != theirs:
            lines.append(f"{game} from {_bounds(mine)} and from {_bounds(theirs)}")
    if not lines:
        return []
    rest = f" and {len(lines) - NAMED} more games" if len(lines) > NAMED else ""
    return [
        f"the normalisers differ, so compare normalised scores with care: 0 to 100% in {names[0]} and "
        f"{names[1]} are {'; '.join(lines[:NAMED])}{rest} (--normaliser gives both the same)"
    ]


def _readings(one: StudyResults, other: StudyResults, names: tuple[str, str]) -> list[str]:
    mine, theirs = one.record.read_at, other.record.read_at
    return [
        f"{reading} is {mine[reading]:,} gradient steps in {names[0]} and {theirs[reading]:,} in {names[1]}"
        for reading in mine
        if reading in theirs and mine[reading] != theirs[reading]
    ]


def _choices(one: StudyResults, other: StudyResults, names: tuple[str, str]) -> list[str]:
    """A warning if both studies select, but in different ways."""
    mine, theirs = rules(one.selections), rules(other.selections)
    if not mine or not theirs or set(mine) == set(theirs):
        return []
    ways = "; ".join(mine), "; ".join(theirs)
    return [f"policies were chosen offline by {ways[0]} in {names[0]} and by {ways[1]} in {names[1]}"]


def _bounds(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:.4g} to {bounds[1]:.4g}"


def _settings_differ(found: list[Difference], names: tuple[str, str]) -> list[str]:
    if not found:
        return []
    settings = list(dict.fromkeys(each.setting for each in found))
    return [
        f"the protocols of {names[0]} and {names[1]} differ in {', '.join(settings)}: see the table below"
    ]


def _versions(ones: list[Version], others: list[Version], names: tuple[str, str]) -> list[str]:
    mine, theirs = ({each.name: " and ".join(each.runs) for each in some} for some in (ones, others))
    return [
        f"{names[0]} was made with {name} {mine[name]}, {names[1]} with {theirs[name]}"
        for name in mine
        if name in theirs and mine[name] != theirs[name]
    ]
