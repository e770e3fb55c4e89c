"""The results of a study, computed from its run folders alone.

Games that some agent has not finished are left out of every number, and named.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from optimist import envs
from optimist.errors import DataError
from optimist.studies.folders import folder_names
from optimist.studies.job import Job
from optimist.studies.plan import WHOLE
from optimist.studies.results import regrets
from optimist.studies.results import runs as results
from optimist.studies.results.logs import Log, read_logs
from optimist.studies.results.runs import Evaluated
from optimist.studies.scores import intervals
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.normalisation import OWN, Normaliser, normaliser
from optimist.studies.scores.score_files import ScoreFile, incomplete_games
from optimist.studies.scores.statistics import Interval
from optimist.studies.status import JobStatus, StudyRecord, job_status, read_record, standings


@dataclass(frozen=True)
class StudyResults:
    """All results of a study."""

    out: Path
    record: StudyRecord
    done: list[Job]  # of the record
    runs: list[Evaluated]
    unfinished: list[JobStatus]
    logs: dict[str, Log]
    by: Normaliser
    findings: list[Finding]
    empty_parts: list[str]  # parts of the data without results yet, each with the reason

    @cached_property
    def on_the_way(self) -> dict[str, dict[str, tuple[list[int], Interval]]]:
        """By finding and agent, the interquartile mean at each evaluation; slow, because it bootstraps."""
        return {each.name: intervals.over_training(each.file, self.by) for each in self.longest}

    @cached_property
    def losses(self) -> list[regrets.Loss]:
        """The regret of each rule of `optimist select`; empty if nothing was selected."""
        return regrets.losses(self.runs, results.random_scores(self.done, self.out))

    @property
    def selections(self) -> list[dict[str, Any]]:
        """What `optimist select` wrote about the runs; empty if nothing was selected."""
        return [run.selection for run in self.runs if run.selection]

    @property
    def longest(self) -> list[Finding]:
        """For each part of the data its longest reading, or if that has no results, another."""
        chosen = {finding.part: finding for finding in self.findings}
        chosen |= {finding.part: finding for finding in self.findings if finding.longest}
        return list(chosen.values())

    @property
    def yardstick(self) -> str:
        """The name of the agent to compare with; an offline agent may be called DQN too."""
        return "the online DQN" if self.by.yardstick == "DQN" else self.by.yardstick

    def ends(self, games: Iterable[str]) -> tuple[str, str]:
        """Who scores 0 and who scores 1 in these games."""
        return self.by.ends(games, self.yardstick)

    @cached_property
    def one_log(self) -> bool:
        """Did all seeds of a game learn from one log? Then intervals over seeds leave out other logs."""
        logs: dict[tuple, set] = {}
        for job in self.record.jobs if self.offline else ():
            own = job.wanted.get("training", {}).get("data_per_seed") == "own"
            if job.label:
                whose = job.seeds if own else (None,)
                logs.setdefault((job.environment, job.part), set()).update((job.data, seed) for seed in whose)
        return any(len(each) == 1 for each in logs.values())

    @property
    def offline(self) -> bool:
        """Did the agents learn from logs alone? Then run i of every agent learned from the same log."""
        return not any(job.plays for job in self.record.jobs if job.label)

    @property
    def agents(self) -> list[str]:
        return list(dict.fromkeys(job.label for job in self.record.jobs if job.label))

    @property
    def unit(self) -> str:
        """The unit of the x axis of curves."""
        return "gradient updates" if self.offline else "steps played"

    def levels(self, part: str, game: str) -> dict[str, float]:
        """Returns that curves are compared with: the paper's two, if the log exists, and random play."""
        lines = {}
        if game in self.logs and part in self.logs[game].best:
            lines = {
                "best policy in the data": self.logs[game].best[part],
                "average behaviour": self.logs[game].average[part],
            }
        return {**lines, "random play": self.by.random_scores[game]}

    def titled(self, words: str, finding: Finding) -> str:
        """The title of a figure, with the part and the reading if the study has several."""
        several = len({other.part for other in self.findings}) > 1
        part = "all of the data" if finding.part == WHOLE and several else finding.part
        where = [word for word in (part, finding.reading) if word != WHOLE]
        return f"{words}: {', '.join(where)}" if where else words


def short_names(games: Sequence[str]) -> dict[str, str]:
    """ "Breakout" for "atari/Breakout", if all games are of one family."""
    short = {game: envs.game_of(game) for game in games}
    one = len({game.removesuffix(short[game]) for game in games}) == 1
    return {game: short[game] if one and short[game] else game for game in games}


def find(out: Path, by: Normaliser | None = None) -> StudyResults:
    """Read the folder of a study; scores are normalised by `by`, or by the study's own scores."""
    record = read_record(out)
    now = standings(record.jobs, out)
    done = [job for job in record.jobs if now[job.name].done]
    runs, logs = results.evaluated(record.jobs, out, now), read_logs(done, out)
    if not record.selects:
        runs = [replace(run, selection=None) for run in runs]
    by = by or (normaliser(record.normaliser) if record.normaliser else None)
    by = by_environment(by, record.jobs) if by else own_normaliser(record, done, out, logs)
    states = [job_status(job, out, now[job.name]) for job in record.jobs]
    study = StudyResults(
        out=out,
        record=record,
        done=done,
        runs=runs,
        unfinished=[each for each in states if each.state != "done"],
        logs=logs,
        by=by,
        findings=[],
        empty_parts=[],
    )
    _add_findings(study)
    return study


def _add_findings(study: StudyResults) -> None:
    """Add the results of every part and reading, or the reason why a part has none."""
    parts, readings = results.parts(study.record.jobs), _readings(study.record.read_at)
    names = folder_names(_words(part, reading) for part in parts for reading, _, _ in readings)
    empty: dict[str, str] = {}
    for part, (reading, until, longest) in product(parts, readings):
        scores = results.score_file(study.runs, part, until)
        try:
            gaps = _gaps(study, scores, part, reading)
        except DataError as problem:
            empty[part] = str(problem)
            continue
        study.findings.append(
            Finding(
                scores.without(gaps),
                study.by,
                gaps,
                name=names[_words(part, reading)],
                part=part,
                reading=reading,
                longest=longest,
                whole_log=not any(job.view for job in study.record.jobs if job.part == part),
                paired=study.offline,
            )
        )
    if not study.findings:
        raise DataError(next(iter(empty.values())))
    study.empty_parts.extend(f"{part}: {why}" for part, why in empty.items())


def own_normaliser(record: StudyRecord, done: list[Job], out: Path, logs: dict[str, Log]) -> Normaliser:
    """The normaliser of random play and the logged player: the worse of the two is 0, the better is 1.

    The player's score is its best evaluation, as in the paper, or, if a player was not evaluated, its play at
    the end of the log."""
    evaluated = all(log.evaluation is not None for log in logs.values())
    scores = {name: log.evaluation if evaluated else log.player for name, log in logs.items()}
    measure = "best evaluation of the logged online agent" if evaluated else "last tenth of its play"
    return Normaliser(
        {environment: score for environment, score in scores.items() if score is not None},
        results.random_scores(done, out),
        yardstick=_player(record, logs),
        provenance=f"the {measure}, the mean over its seeds, and random play, of this study",
    )


def _player(record: StudyRecord, logs: Mapping[str, Log]) -> str:
    """The name of the agent whose play is 100%: "DQN", as in the paper, if it played the logs.

    Online agents are not in the paper's Table 1, so the name of the first one gets "in training"."""
    online = [job for job in record.jobs if job.plays and job.label]
    if online:
        return f"{online[0].label} in training"
    players = {job.agent for job in record.jobs if job.collects}
    players = players or {log.agent for log in logs.values()}
    if "" in players:
        return "the player of the log"
    names = sorted(name.rpartition(":")[2] for name in players - {"dqn"})
    return f"the logged {' and '.join(names).upper()}" if names else "DQN"


def _words(part: str, reading: str) -> str:
    """Part and reading as one label."""
    return "\n".join(word for word in (part, reading) if word != WHOLE) or WHOLE


def _gaps(study: StudyResults, scores: ScoreFile, part: str, reading: str) -> dict[str, str]:
    """Games that are left out, each with the reason; raises DataError if no game is left."""
    if not scores.agents:
        raise DataError(f"no run on {part} is finished: see optimist study status")
    if not all(
        curve for games in scores.agents.values() for seeds in games.values() for curve in seeds.values()
    ):
        raise DataError(f"{reading} is before the first evaluation: set a later step in read_at")
    without = _without_yardstick(scores, study.by) if study.by.name == OWN else {}
    gaps = {**without, **results.partly_run(study.record.jobs, study.runs, part), **scores.gaps()}
    if len(gaps) == len(scores.games):
        raise DataError(
            f"{incomplete_games(gaps, len(gaps))}: no game is left; finish the runs, "
            "or define 0 and 100% with optimist study report --normaliser FILE.csv"
        )
    return gaps


def _readings(read_at: dict[str, int]) -> list[tuple[str, int | None, bool]]:
    last = max(read_at.values(), default=0)
    return [(reading, until, until == last) for reading, until in read_at.items()] or [("all", None, True)]


def _without_yardstick(scores: ScoreFile, by: Normaliser) -> dict[str, str]:
    """Games that cannot be normalised: random play or the player has no score, or both have the same."""
    reasons = {}
    for game in scores.games:
        if game not in by.random_scores:
            reasons[game] = "random play is not finished"
        elif game not in by.yardstick_scores:
            reasons[game] = "its log is missing, or has no complete episode at its end"
        elif by.random_scores[game] == by.yardstick_scores[game]:
            reasons[game] = f"its player and random play both score {by.random_scores[game]:g}"
    return reasons


def by_environment(by: Normaliser, jobs: Sequence[Job]) -> Normaliser:
    """The normaliser by environment: published scores have "Breakout" for "atari/Breakout?no_ops=30"."""
    environments = dict.fromkeys(job.environment for job in jobs)

    def renamed(scores: Mapping[str, float]) -> dict[str, float]:
        games = {name: envs.game_of(envs.base_name(name)) for name in environments if name not in scores}
        names = {name: games.get(name, name) for name in environments}
        return {name: scores[game] for name, game in names.items() if game in scores}

    named = replace(
        by, yardstick_scores=renamed(by.yardstick_scores), random_scores=renamed(by.random_scores)
    )
    for environment in environments:
        named.bounds(environment)  # raises if it has no scores of the game
    return named
