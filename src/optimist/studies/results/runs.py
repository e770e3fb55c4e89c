"""From a study's run folders to tables of scores; nothing unfinished is averaged in."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from optimist.errors import RunError
from optimist.studies.job import Job
from optimist.studies.scores import curves as scores
from optimist.studies.scores.score_files import ScoreFile, Seeds
from optimist.studies.sheet import Sheet, as_csv


@dataclass(frozen=True)
class Evaluated:
    """A finished run: its curves, and the play online that they have cost."""

    job: Job
    curves: Seeds
    episodes: int
    steps: int


def parts(jobs: list[Job]) -> list[str]:
    """The parts of the data that the study's agents learned from."""
    return list(dict.fromkeys(job.part for job in jobs if job.label))


def finished(jobs: list[Job], out: Path) -> tuple[list[Job], list[str]]:
    """The labelled runs that are done, and the names of those that are not."""
    labelled = [job for job in jobs if job.label]
    return [job for job in labelled if job.done(out)], [job.name for job in labelled if not job.done(out)]


def evaluated(jobs: list[Job], out: Path) -> list[Evaluated]:
    """Every finished run that has a name in the tables, each file read once."""
    done, _ = finished(jobs, out)
    if not done:
        raise RunError(f"{out} holds no finished runs yet: see optimist study status {out}")
    return [_evaluated(job, out) for job in done]


def score_file(runs: Iterable[Evaluated], part: str, until: int | None = None) -> ScoreFile:
    """The evaluations of the runs on one part of the data, up to so many gradient steps: a 1X result is
    read off the 5X run on its way."""
    found: dict[str, dict[str, Seeds]] = {}
    for run in runs:
        if run.job.part == part:
            curves = {
                seed: {step: score for step, score in curve.items() if until is None or step <= until}
                for seed, curve in run.curves.items()
            }
            by_game = found.setdefault(run.job.label, {})
            by_game[run.job.environment] = {**by_game.get(run.job.environment, {}), **curves}
    return ScoreFile(found, "step")


def _evaluated(job: Job, out: Path) -> Evaluated:
    played = scores.episodes(job.run_folder(out))
    return Evaluated(job, scores.averages(played), len(played.length), int(played.length.sum()))


def csv_text(file: ScoreFile) -> str:
    """The same as `optimist scores` reads it."""
    rows = [
        (game, agent, seed, step, score)
        for agent, games in file.agents.items()
        for game, seeds in games.items()
        for seed, curve in seeds.items()
        for step, score in curve.items()
    ]
    return as_csv(Sheet("", ["game", "agent", "seed", "step", "score"], rows))


def random_scores(jobs: list[Job], out: Path) -> dict[str, float]:
    """By environment, what random play scored in the same study."""
    return {
        job.environment: scores.scores(job.run_folder(out))[0].last
        for job in jobs
        if job.agent == "random" and job.done(out)
    }
