"""From a study's run folders to tables of scores; nothing unfinished is averaged in."""

from pathlib import Path

from optimist.data.store import Dataset
from optimist.errors import RunError
from optimist.studies import scores
from optimist.studies.job import Job
from optimist.studies.players import FINAL_SHARE
from optimist.studies.score_files import ScoreFile, Seeds


def parts(jobs: list[Job]) -> list[str]:
    """The parts of the data that the study's agents learned from."""
    return list(dict.fromkeys(job.part for job in jobs if job.label))


def finished(jobs: list[Job], out: Path) -> tuple[list[Job], list[str]]:
    """The labelled runs that are done, and the names of those that are not."""
    labelled = [job for job in jobs if job.label]
    return [job for job in labelled if job.done(out)], [job.name for job in labelled if not job.done(out)]


def score_file(jobs: list[Job], out: Path, part: str, until: int | None = None) -> ScoreFile:
    """The evaluations of every finished run on one part of the data, up to so many gradient steps: a 1X
    result is read off the 5X run on its way."""
    done, _ = finished(jobs, out)
    found: dict[str, dict[str, Seeds]] = {}
    for job in done:
        if job.part == part:
            curves = {
                seed: {step: score for step, score in curve.items() if until is None or step <= until}
                for seed, curve in scores.curves(job.run_folder(out)).items()
            }
            found.setdefault(job.label, {})[job.environment] = curves
    if not found:
        raise RunError(f"{out} holds no finished runs on {part} yet: see optimist study status {out}")
    return ScoreFile(found, "step")


def csv_text(file: ScoreFile) -> str:
    """The same as `optimist scores` reads it."""
    rows = [
        f"{game},{agent},{seed},{step},{score!r}"
        for agent, games in file.agents.items()
        for game, seeds in games.items()
        for seed, curve in seeds.items()
        for step, score in curve.items()
    ]
    return "\n".join(["game,agent,seed,step,score", *rows]) + "\n"


def random_scores(jobs: list[Job], out: Path) -> dict[str, float]:
    """By environment, what random play scored in the same study."""
    return {
        job.environment: scores.scores(job.run_folder(out))[0].last
        for job in jobs
        if job.agent == "random" and job.done(out)
    }


def players_scores(jobs: list[Job], out: Path) -> dict[str, float]:
    """By environment, how the agent that was logged played in the end: the study's own fully trained DQN."""
    logs = {job.environment: job.data_folder(out) for job in jobs if not job.plays and job.done(out)}
    found = {}
    for environment, folder in logs.items():
        dataset = Dataset.open(folder)
        episodes = dataset.last(max(1, int(FINAL_SHARE * len(dataset)))).episodes
        if episodes.complete.any():
            found[environment] = float(episodes.returns[episodes.complete].mean())
    return found
