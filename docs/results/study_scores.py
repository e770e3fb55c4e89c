"""The CSV files of a page from the folder of a study, or from its unpacked found.tar.gz.

    python docs/results/study_scores.py STUDY docs/results/ten-times-the-log

`optimist study report` reads finished runs only. Here a run that the clock ended counts with what it has.
Games, agents and seeds accumulate, as in `gathering.py`: scores.csv has every evaluation (the part of the
data is in the agent's name, as in "REM, 20%"), player-scores.csv those of the players, players.csv their
returns while they played (if `study_players.py` wrote them), normaliser.csv random play and the best
evaluation of the mean over the DQN players, and estimates.csv what each run thought of its log at its end:
the mean estimate, the mean return to come in the log, and how often both choose the same action.
"""

import csv
from pathlib import Path

from command import call
from gathering import add, episodes_of, lines

from optimist.studies.job import Job
from optimist.studies.results.runs import random_scores
from optimist.studies.scores.curves import Curve, mean_curve
from optimist.studies.status import read_record

ALL = "all"  # the part of a study without parts
ESTIMATES = ("estimate", "logged_value", "agreement")  # names in metrics.jsonl


def curves_of(run: Path) -> dict[int, Curve]:
    """{seed: {step: score}}"""
    found: dict[int, Curve] = {}
    for (seed, step), each in episodes_of(run).items():
        found.setdefault(seed, {})[step] = sum(score for score, _ in each) / len(each)
    return found


def agent_of(job: Job) -> str:
    """Its name on the page."""
    return job.label + f", {job.part}" * (job.part not in ("", ALL))


def write_scores(jobs: list[Job], study: Path, out: Path) -> None:
    rows = [
        [job.environment, agent_of(job), seed, step, score]
        for job in jobs
        for seed, curve in curves_of(job.run_folder(study)).items()
        for step, score in curve.items()
        if job.label
    ]
    add(out / "scores.csv", ["game", "agent", "seed", "step", "score"], rows)


def write_estimates(jobs: list[Job], study: Path, out: Path) -> None:
    rows = []
    for job in (job for job in jobs if job.label):
        ends = {
            figures["seed"]: figures
            for figures in lines(job.run_folder(study) / "metrics.jsonl")
            if "estimate" in figures
        }
        for seed, figures in ends.items():
            read = (f"{figures[name]:.4g}" for name in ESTIMATES)
            rows.append([job.environment, agent_of(job), seed, figures["step"], *read])
    add(out / "estimates.csv", ["game", "agent", "seed", "step", *ESTIMATES], rows)


def write_players(jobs: list[Job], study: Path, out: Path) -> None:
    scores, returns, limits = [], [], []
    random = random_scores(jobs, study)
    for job in (job for job in jobs if job.collects and job.agent != "random"):
        played = curves_of(job.run_folder(study))
        for seed, curve in played.items():
            scores += [[job.environment, seed, step, score] for step, score in curve.items()]
        if (beside := study / job.name / "players.csv").exists():
            with beside.open() as file:
                returns += list(csv.reader(file))[1:]
        if played and job.agent == "dqn" and job.environment in random:
            limits.append([job.environment, random[job.environment], max(mean_curve(played).values())])
    add(out / "player-scores.csv", ["game", "seed", "step", "score"], scores)
    add(out / "players.csv", ["game", "seed", "final_return", "mean_return"], returns)
    add(out / "normaliser.csv", ["game", "random", "DQN"], limits)


def main(study: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    jobs = read_record(study).jobs
    write_scores(jobs, study, out)
    write_estimates(jobs, study, out)
    write_players(jobs, study, out)


if __name__ == "__main__":
    call(__doc__, main)
