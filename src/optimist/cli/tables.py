"""Tables of runs and studies on the command line."""

from collections.abc import Sequence

import numpy as np

from optimist.errors import in_one_line
from optimist.studies.job import Job
from optimist.studies.sheet import Sheet, number
from optimist.studies.status import JobStatus
from optimist.training.evaluation import EpisodeScore, mean_scores

REASONS = 10  # runs whose failure `study status` explains


def evaluation_table(step: int, rows: list[EpisodeScore]) -> Sheet:
    heads = ("seed", "episodes", "average return", "worst", "best", "average length")
    means, shown = mean_scores(rows), []
    for seed, mean in means.items():
        mine = [row for row in rows if row.seed == seed]
        scores, length = [row.score for row in mine], np.mean([row.length for row in mine])
        worst, best = number(min(scores)), number(max(scores))
        shown.append([str(seed), len(mine), f"{mean:.2f}", worst, best, f"{length:.0f}"])
    if len(means) > 1:
        every = list(means.values())
        together = f"{np.mean(every):.2f} ± {np.std(every, ddof=1):.2f}"
        shown.append(["all", len(rows), together, "", "", ""])
    return Sheet(f"after {step:,} steps", heads, shown)


def evaluation_line(step: int, rows: list[EpisodeScore]) -> str:
    """The same in one line."""
    means = mean_scores(rows)
    each = ", ".join(f"seed {seed}: {mean:.2f}" for seed, mean in means.items())
    return f"step {step:,}: average return {np.mean(list(means.values())):.2f} ({each})"


def grid_table(title: str, jobs: Sequence[Job]) -> Sheet:
    """The runs of a study, one per line, and their total."""
    rows = [
        [job.name, f"{job.agent} ({job.preset})" if job.preset else job.agent, len(job.seeds), job.steps()]
        for job in jobs
    ]
    played = sum(job.steps() * len(job.seeds) for job in jobs if job.plays)
    learners = [job for job in jobs if not job.plays and job.label]  # random play has no label
    learned = sum(job.steps() * len(job.seeds) for job in learners)
    sum_of = f"{len(jobs)} runs: {played:,} steps played, {learned:,} updates offline"
    return Sheet(title, ("run", "agent", "seeds", "steps per seed"), rows, [sum_of])


def status_table(title: str, runs: Sequence[JobStatus]) -> Sheet:
    """The progress of each run of a study."""
    rows = [
        [
            run.name,
            run.state,
            f"{run.step:,} of {run.steps:,}",
            f"{run.rate:,.0f}" if run.rate else None,
            None if run.seconds_left is None else f"{run.seconds_left:,.0f} s",
        ]
        for run in runs
    ]
    done = sum(run.state == "done" for run in runs)
    heads = ("run", "state", "progress", "steps/s", "time left")
    reasons = [f"{run.name}: {in_one_line(run.complaint, 400)}" for run in runs if run.complaint]
    left = len(reasons) - REASONS
    more = [f"{left} more runs have such a line in the report"] if left > 0 else []
    return Sheet(title, heads, rows, [f"{done} of {len(runs)} done", *reasons[:REASONS], *more])
