"""Runs a job: opens its part of a log and learns from it, or plays."""

from pathlib import Path

from optimist.data.dataset import Dataset
from optimist.studies.job import Job, viewed
from optimist.studies.players import ranked
from optimist.studies.store import is_address, stage
from optimist.training.offline import OfflineTraining
from optimist.training.online import OnlineTraining


def perform_job(job: Job, out: Path) -> None:
    """Run the job to its end, from its last checkpoint."""
    if job.plays:
        _play(job, out)
    else:
        _learn(job, out)


def _play(job: Job, out: Path) -> None:
    OnlineTraining(
        job.built_agent(),
        job.environment,
        job.record(),
        out=out / job.name,
        seeds=job.seeds,
        restart=job.restart,
    ).run()


def _learn(job: Job, out: Path) -> None:
    dataset = Dataset.open(stage(job.data) if job.data and is_address(job.data) else job.data_folder(out))
    OfflineTraining(
        job.built_agent(),
        dataset,
        job.record(),
        out=job.run_folder(out),
        seeds=tuple(best_players(job, dataset)) or job.seeds,
        environment=job.environment,
        restart=job.restart,
        part=lambda log: viewed(job.part_of(log), job.share),
        part_name=job.part_in_words,
    ).run()


def players_of(job: Job, dataset: Dataset) -> list[Dataset]:
    """The log of each player that the job learns from."""
    seeds = best_players(job, dataset) or dataset.provenance.get("seeds", [])
    return [dataset.played_by(seed) for seed in seeds] if len(seeds) > 1 or job.kept else [dataset]


def parts_of(job: Job, dataset: Dataset) -> list[Dataset]:
    """The part of each player's log that the job is about: of each log by itself if each seed has its own,
    otherwise what each player has in the part of all logs together."""
    if job.wanted.get("training", {}).get("data_per_seed") == "own":
        return [job.part_of(log) for log in players_of(job, dataset)]
    return players_of(job, job.part_of(dataset))


def best_players(job: Job, dataset: Dataset) -> list[int]:
    """The seeds of the players that the job learns from; empty if it learns from all."""
    return [player.seed for player in ranked(dataset)[: job.kept]] if job.kept else []
