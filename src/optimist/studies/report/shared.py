"""What two studies share: the agents, games, parts of the data and readings that both have."""

from collections.abc import Sequence
from dataclasses import dataclass

from optimist.errors import DataError, some_of
from optimist.studies.plan import WHOLE
from optimist.studies.results.findings import Finding, StudyResults, is_whole
from optimist.studies.scores.score_files import ScoreFile

NAMED = 3  # games, agents, parts or readings that a line names; the others are counted
SHARED = {  # what two studies must share, and the remedy if they do not
    "agents": "give agents the same names in both studies' files",
    "parts of the data": "give parts the same names in both studies' files",
    "readings": "give read_at the same names in both studies' files, and run the same commands again",
    "games": "name two studies of the same games",
}


@dataclass(frozen=True)
class Pair:
    """The scores of both studies on one part of the data and reading, for shared agents and games."""

    place: str
    first: ScoreFile
    second: ScoreFile
    evaluations: tuple[int, int]


def pairs_of(one: StudyResults, other: StudyResults, names: tuple[str, str]) -> list[Pair]:
    others = {(finding.part, finding.reading): finding for finding in other.found}
    pairs = []
    for finding in one.found:
        twin = others.get((finding.part, finding.reading))
        pair = _shared(finding, twin) if twin else None
        pairs += [pair] if pair else []
    if not pairs:
        raise DataError(_nothing_shared(one, other, names))
    return pairs


def _shared(one: Finding, other: Finding) -> Pair | None:
    agents = [agent for agent in one.file.agents if agent in other.file.agents]
    games = [game for game in one.file.games if game in other.file.games]
    if not agents or not games:
        return None
    files = [_only(file, agents, games) for file in (one.file, other.file)]
    place = ", ".join(word for word in (one.part, one.reading) if word != WHOLE)
    return Pair(place, files[0], files[1], (one.evaluations, other.evaluations))


def _only(file: ScoreFile, agents: list[str], games: list[str]) -> ScoreFile:
    kept = {agent: {game: file.agents[agent][game] for game in games} for agent in agents}
    return ScoreFile(kept, file.axis, file.chosen)


def _nothing_shared(one: StudyResults, other: StudyResults, names: tuple[str, str]) -> str:
    mine, theirs = _had(one), _had(other)
    for what, remedy in SHARED.items():
        if not set(mine[what]) & set(theirs[what]):
            had = [
                some_of(_in_words(what, names_of[what], study), NAMED)
                for names_of, study in ((mine, one), (theirs, other))
            ]
            return (
                f"{names[0]} and {names[1]} have no {what} in common: {names[0]} has {had[0]}, "
                f"{names[1]} has {had[1]}; {remedy}"
            )
    return (
        f"{names[0]} and {names[1]} have no agent in common on any game, part of the data and reading: "
        "see what is finished with optimist study status"
    )


def only_in_one(one: StudyResults, other: StudyResults, names: tuple[str, str]) -> list[str]:
    mine, theirs = _had(one), _had(other)
    lines = []
    for what in SHARED:
        for name, study, had, others in ((names[0], one, mine, theirs), (names[1], other, theirs, mine)):
            if extra := sorted(set(had[what]) - set(others[what])):
                lines.append(f"only {name} has the {what} {', '.join(_in_words(what, extra, study))}")
    return lines


def _in_words(what: str, names: Sequence[str], study: StudyResults) -> list[str]:
    """The agents, parts, readings or games as a line names them; "all" may be no word of the study."""
    unnamed = {}
    if what == "parts of the data" and is_whole(WHOLE, study.record):
        unnamed[WHOLE] = f'all of the data ("{WHOLE}")'
    if what == "readings" and WHOLE not in study.record.read_at:
        unnamed[WHOLE] = "the end of the runs"
    return [unnamed.get(name, name) for name in names]


def _had(results: StudyResults) -> dict[str, list[str]]:
    """The agents, parts, readings and games that have results, in the order of the study."""
    files = [finding.file for finding in results.found]
    had = {
        "agents": [agent for file in files for agent in file.agents],
        "parts of the data": [finding.part for finding in results.found],
        "readings": [finding.reading for finding in results.found],
        "games": [game for file in files for game in file.games],
    }
    return {what: list(dict.fromkeys(each)) for what, each in had.items()}
