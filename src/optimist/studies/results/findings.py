"""The results of a study, computed from its run folders alone.

Games that some agent has not finished are left out of every number, and named.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from optimist import envs
from optimist.errors import DataError, RunError, command_line
from optimist.studies import status
from optimist.studies.job import Job
from optimist.studies.plan import WHOLE, folder_names
from optimist.studies.results.logs import Log, read_logs
from optimist.studies.scores import intervals
from optimist.studies.scores.curves import Curve, ScoreFile, Seeds, averages, episodes, incomplete_games
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.normalisation import OWN, Normaliser, normaliser
from optimist.studies.scores.statistics import Interval
from optimist.studies.sheet import Sheet, as_csv
from optimist.training.settings import is_due
from optimist.training.storage.checkpoint import kept_steps
from optimist.training.storage.run_folder import read_config
from optimist.training.storage.selected import chosen_steps, is_of_all, read_selection


@dataclass(frozen=True)
class Evaluated:
    """A finished run: its curves, and the episodes and steps of its evaluations."""

    job: Job
    curves: Seeds
    episodes: int
    steps: int
    selection: dict[str, Any] | None = None  # what `optimist select` wrote about it


@dataclass(frozen=True)
class StudyResults:
    """All results of a study."""

    out: Path
    record: status.StudyRecord
    done: list[Job]  # of the record
    runs: list[Evaluated]
    unfinished: list[status.JobStatus]
    logs: dict[str, Log]
    by: Normaliser
    findings: list[Finding] = field(default_factory=list)
    empty_parts: list[str] = field(default_factory=list)  # without results yet, each with the reason

    @cached_property
    def on_the_way(self) -> dict[str, dict[str, tuple[list[int], Interval]]]:
        """By finding and agent, the interquartile mean at each evaluation; slow, because it bootstraps."""
        return {each.name: intervals.over_training(each.file, self.by) for each in self.longest}

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


def find(
    out: Path, by: Normaliser | None = None, now: Mapping[str, status.Standing] | None = None
) -> StudyResults:
    """Read the folder of a study; scores are normalised by `by`, or by the study's own scores. `now` is what
    the folders of its jobs hold, if the caller has looked already."""
    record = status.read_record(out)
    now = now or status.standings(record.jobs, out)
    done = [job for job in record.jobs if now[job.name].done]
    runs, logs = evaluated(record.jobs, out, now), read_logs(done, out)
    if not record.selects:
        runs = [replace(run, selection=None) for run in runs]
    by = by or (normaliser(record.normaliser) if record.normaliser else None)
    by = by_environment(by, record.jobs) if by else own_normaliser(record, done, out, logs)
    states = [status.job_status(job, out, now[job.name]) for job in record.jobs]
    unfinished = [each for each in states if each.state != "done"]
    study = StudyResults(out, record, done, runs, unfinished, logs, by)
    last = max(record.read_at.values(), default=0)
    readings: list[tuple[str, int | None, bool]] = [(WHOLE, None, True)]
    if record.read_at:
        readings = [(reading, until, until == last) for reading, until in record.read_at.items()]
    every = list(product(parts(record.jobs), readings))
    names = folder_names(_words(part, reading) for part, (reading, _, _) in every)
    empty: dict[str, str] = {}
    for part, (reading, until, longest) in every:
        scores = score_file(runs, part, until)
        try:
            gaps = _gaps(study, scores, part, reading)
        except DataError as problem:
            empty[part] = str(problem)
            continue
        study.findings.append(
            Finding(
                scores.without(gaps),
                by,
                gaps,
                name=names[_words(part, reading)],
                part=part,
                reading=reading,
                longest=longest,
                whole_log=not any(job.view for job in record.jobs if job.part == part),
                paired=study.offline,
            )
        )
    if not study.findings:
        raise DataError(next(iter(empty.values())))
    study.empty_parts.extend(f"{part}: {why}" for part, why in empty.items())
    return study


def _words(part: str, reading: str) -> str:
    """Part and reading as one label."""
    return "\n".join(word for word in (part, reading) if word != WHOLE) or WHOLE


def parts(jobs: list[Job]) -> list[str]:
    """The parts of the data that the study's agents learned from."""
    return list(dict.fromkeys(job.part for job in jobs if job.label))


def evaluated(jobs: list[Job], out: Path, now: Mapping[str, status.Standing]) -> list[Evaluated]:
    """Every finished run of the study's agents."""
    done = [job for job in jobs if job.label and now[job.name].done]
    if not done:
        if any(now[job.name].changes for job in jobs if job.label):
            status.check_settings(jobs, out, now)  # names them
        raise RunError(f"{out} holds no finished runs yet: see {command_line('study', 'status', out)}")
    runs = []
    for job in done:
        folder = job.run_folder(out)
        played, selection = episodes(folder), read_selection(folder)
        if selection and not is_of_all(selection, kept_steps(folder)):
            selection = None  # the run was continued since, and the other scores are of the longer run
        training = read_config(folder).get("training", {})
        every, steps, lanes = (training.get(name, 1) for name in ("evaluate_every", "steps", "lanes"))
        # A run that was made longer also has an evaluation at its former end, which the others lack.
        planned = {
            seed: {
                at: score for at, score in curve.items() if is_due(at, every=every, steps=steps, lanes=lanes)
            }
            for seed, curve in averages(played).items()
        }
        runs.append(Evaluated(job, planned, len(played.length), int(played.length.sum()), selection))
    return runs


def score_file(runs: Iterable[Evaluated], part: str, until: int | None = None) -> ScoreFile:
    """The evaluations on one part of the data, up to `until` gradient steps: a 1X result is the first fifth
    of a 5X run."""
    agents: dict[str, dict[str, dict[int, Curve]]] = {}
    chosen: dict[str, dict[str, dict[int, int]]] = {}
    for run in runs:
        if run.job.part == part:
            agent, game = run.job.label, run.job.environment
            early = {
                seed: {step: score for step, score in curve.items() if until is None or step <= until}
                for seed, curve in run.curves.items()
            }
            agents.setdefault(agent, {}).setdefault(game, {}).update(early)
            if run.selection:
                mine = chosen.setdefault(agent, {}).setdefault(game, {})
                mine.update(chosen_steps(run.selection, early))
    return ScoreFile(agents, "step", chosen)


def csv_text(file: ScoreFile) -> str:
    """The scores as CSV that `optimist scores` reads."""
    rows = [
        (game, agent, seed, step, score)
        for agent, games in file.agents.items()
        for game, seeds in games.items()
        for seed, curve in seeds.items()
        for step, score in curve.items()
    ]
    return as_csv(Sheet("", ["game", "agent", "seed", "step", "score"], rows))


def random_returns(done: list[Job], out: Path) -> dict[str, np.ndarray]:
    """The returns of the episodes of random play, which is evaluated once in each environment."""
    random = [job for job in done if job.agent == "random" and not job.collects]
    return {job.environment: episodes(job.run_folder(out)).score for job in random}


def random_scores(done: list[Job], out: Path) -> dict[str, float]:
    """The score of random play in each environment of the study."""
    return {game: fmean(returns.tolist()) for game, returns in random_returns(done, out).items()}


def own_normaliser(
    record: status.StudyRecord, done: list[Job], out: Path, logs: dict[str, Log]
) -> Normaliser:
    """The normaliser of random play and the logged player: the worse of the two is 0, the better is 1.

    The player's score is its best evaluation, as in the paper, or, if a player was not evaluated, its play at
    the end of the log. Its name is "DQN", as in the paper, if it played the logs."""
    is_evaluated = all(log.evaluation is not None for log in logs.values())
    scores = {name: log.evaluation if is_evaluated else log.player for name, log in logs.items()}
    measure = "best evaluation of the logged online agent" if is_evaluated else "last tenth of its play"
    # Online agents are not in the paper's Table 1, so the name of the first one gets "in training".
    online = [job for job in record.jobs if job.plays and job.label]
    players = {job.agent for job in record.jobs if job.collects} or {log.agent for log in logs.values()}
    names = sorted(name.rpartition(":")[2] for name in players - {"dqn"})
    yardstick = f"the logged {' and '.join(names).upper()}" if names else "DQN"
    if online:
        yardstick = f"{online[0].label} in training"
    elif "" in players:
        yardstick = "the player of the log"
    return Normaliser(
        {environment: score for environment, score in scores.items() if score is not None},
        random_scores(done, out),
        yardstick=yardstick,
        provenance=f"the {measure}, the mean over its seeds, and random play, of this study",
    )


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


def _gaps(study: StudyResults, scores: ScoreFile, part: str, reading: str) -> dict[str, str]:
    """Games that are left out, each with the reason; raises DataError if no game is left."""
    if not scores.agents:
        raise DataError(f"no run on {part} is finished: see optimist study status")
    if not all(
        curve for games in scores.agents.values() for seeds in games.values() for curve in seeds.values()
    ):
        raise DataError(f"{reading} is before the first evaluation: set a later step in read_at")
    gaps = {}
    for game in scores.games if study.by.name == OWN else ():
        if game not in study.by.random_scores:
            gaps[game] = "random play is not finished"
        elif game not in study.by.yardstick_scores:
            gaps[game] = "its log is missing, or has no complete episode at its end"
        elif study.by.random_scores[game] == study.by.yardstick_scores[game]:
            gaps[game] = f"its player and random play both score {study.by.random_scores[game]:g}"
    # Games in which an agent has only some of its runs: where each seed has a run of its own, all agents may
    # lack the same one.
    done = {run.job.name: run.job for run in study.runs if run.job.part == part}
    begun = {(job.label, job.environment) for job in done.values()}
    lacking: dict[str, str] = {}
    for job in study.record.jobs:
        if job.part == part and job.name not in done and (job.label, job.environment) in begun:
            lacking.setdefault(job.environment, f"{job.label} lacks seed {job.seeds[0]}")
    gaps |= lacking | scores.gaps()
    if len(gaps) == len(scores.games):
        raise DataError(
            f"{incomplete_games(gaps, len(gaps))}: no game is left; finish the runs, "
            "or define 0 and 100% with optimist study report --normaliser FILE.csv"
        )
    return gaps
