"""The finished runs of a study, and their scores as a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from optimist.errors import RunError, command_line
from optimist.studies.job import Job, Standing
from optimist.studies.preparation import check_settings
from optimist.studies.scores.curves import Curve, averages, episodes
from optimist.studies.scores.score_files import ScoreFile, Seeds
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


def parts(jobs: list[Job]) -> list[str]:
    """The parts of the data that the study's agents learned from."""
    return list(dict.fromkeys(job.part for job in jobs if job.label))


def evaluated(jobs: list[Job], out: Path, now: Mapping[str, Standing]) -> list[Evaluated]:
    """Every finished run of the study's agents."""
    done = [job for job in jobs if job.label and now[job.name].done]
    if not done:
        if any(now[job.name].changes for job in jobs if job.label):
            check_settings(jobs, out, now)  # names them
        raise RunError(f"{out} holds no finished runs yet: see {command_line('study', 'status', out)}")
    return [_evaluated(job, out) for job in done]


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


def partly_run(jobs: Iterable[Job], runs: Iterable[Evaluated], part: str) -> dict[str, str]:
    """The games in which an agent has only some of its runs, each with the first seed that it lacks: where
    each seed has a run of its own, all agents may lack the same one."""
    done = {run.job.name: run.job for run in runs if run.job.part == part}
    begun = {(job.label, job.environment) for job in done.values()}
    found: dict[str, str] = {}
    for job in jobs:
        known = job.part == part and (job.label, job.environment) in begun
        if known and job.name not in done:
            found.setdefault(job.environment, f"{job.label} lacks seed {job.seeds[0]}")
    return found


def _evaluated(job: Job, out: Path) -> Evaluated:
    folder = job.run_folder(out)
    played, selection = episodes(folder), read_selection(folder)
    if selection and not is_of_all(selection, kept_steps(folder)):
        selection = None  # the run was continued since, and the other scores are of the longer run
    training = read_config(folder).get("training", {})
    planned = {seed: _planned(curve, training) for seed, curve in averages(played).items()}
    return Evaluated(job, planned, len(played.length), int(played.length.sum()), selection)


def _planned(curve: Curve, training: Mapping[str, Any]) -> Curve:
    """The evaluations of a run of this length. A run that was made longer also has one at its former end,
    which the runs that were never shorter lack."""
    every, steps, lanes = (training.get(name, 1) for name in ("evaluate_every", "steps", "lanes"))
    return {at: score for at, score in curve.items() if is_due(at, every=every, steps=steps, lanes=lanes)}


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


def random_scores(done: list[Job], out: Path) -> dict[str, float]:
    """The score of random play in each environment of the study."""
    return {game: fmean(returns.tolist()) for game, returns in random_returns(done, out).items()}


def random_returns(done: list[Job], out: Path) -> dict[str, np.ndarray]:
    """The returns of the episodes of random play, which is evaluated once in each environment."""
    random = [job for job in done if job.agent == "random" and not job.collects]
    return {job.environment: episodes(job.run_folder(out)).score for job in random}
