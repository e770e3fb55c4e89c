"""What the logs of a study are worth: how their players ended, and the best and the average of each part."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optimist.data.card import best_policy_return
from optimist.data.store import Dataset
from optimist.studies.job import Job
from optimist.studies.players import FINAL_SHARE


@dataclass(frozen=True)
class Log:
    """Mean returns of complete episodes; what has none is not there."""

    player: float | None  # at the end of the log
    best: dict[str, float]  # by part of the data: of the best policy in it
    average: dict[str, float]  # by part of the data


def read_logs(jobs: list[Job], out: Path) -> dict[str, Log]:
    """By environment; each log is opened once. Logs are large: one that was taken away is passed over."""
    learned: dict[str, list[Job]] = {}
    for job in jobs:
        if not job.plays and job.done(out) and job.data_folder(out).exists():
            learned.setdefault(job.environment, []).append(job)
    return {environment: _log(mine, out) for environment, mine in learned.items()}


def _log(jobs: list[Job], out: Path) -> Log:
    whole = Dataset.open(jobs[0].data_folder(out))
    final = _returns(whole.last(max(1, int(FINAL_SHARE * len(whole)))))
    parts = {
        job.part: _returns(job.part_of(whole))
        for job in {job.part: job for job in jobs if job.label}.values()
    }
    return Log(
        player=float(final.mean()) if len(final) else None,
        best={part: best_policy_return(returns) for part, returns in parts.items() if len(returns)},
        average={part: float(returns.mean()) for part, returns in parts.items() if len(returns)},
    )


def _returns(dataset: Dataset) -> np.ndarray:
    """Of its complete episodes, in the order in which they were played."""
    episodes = dataset.episodes
    return episodes.returns[episodes.complete][np.argsort(episodes.time[episodes.complete])]
