"""Returns in the logs of a study: final play of the players, and best and average of each part."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk import manifest
from optimist.data.disk.files import write_whole
from optimist.data.disk.records import json_value, record
from optimist.data.look import best_policy_return
from optimist.errors import DataError, RunError, in_one_line
from optimist.studies.job import Job, best_players, final_returns, parts_of, players_of
from optimist.studies.scores.curves import Curve, curves, mean_curve
from optimist.training.resolve import IMPORTED

REMEMBERED = "results/logs.json"  # logs are large and may be deleted; their returns are kept here


@dataclass(frozen=True)
class Log:
    """Mean returns of complete episodes; a part without any has no entry."""

    player: float | None  # at the end of the log, exploration included
    best: dict[str, float]  # of the best policy in each part of the data
    average: dict[str, float]  # of each part of the data
    evaluation: float | None = None  # the best evaluation of the player, as the paper measures it
    players: dict[str, float] = field(default_factory=dict)  # best evaluation of each player, by its seed
    exploring: dict[str, float] = field(default_factory=dict)  # `player` of each of them, by its seed
    agent: str = ""  # that played; "" in somebody else's log


def read_logs(done: list[Job], out: Path) -> dict[str, Log]:
    """The log of each environment; if it was deleted or some of its files were, its values from
    results/logs.json."""
    remembered = _remembered(out / REMEMBERED)
    learned: dict[str, list[Job]] = {}
    for job in done:
        if not job.plays:
            learned.setdefault(job.environment, []).append(job)
    found = {}
    for environment, mine in learned.items():
        try:
            if all((job.data_folder(out) / manifest.NAME).exists() for job in mine):
                found[environment] = _log(mine, out)
                continue
        except DataError:  # part of the log was deleted
            if environment not in remembered:
                raise
        if environment in remembered:
            found[environment] = remembered[environment]
    return found


def remember(logs: Mapping[str, Log], out: Path) -> None:
    text = json.dumps({environment: asdict(log) for environment, log in logs.items()}, indent=1)
    write_whole(out / REMEMBERED, text.encode())


def _remembered(path: Path) -> dict[str, Log]:
    if not path.exists():
        return {}
    try:
        return record(dict[str, Log], json_value(path.read_text("utf-8")))
    except ValueError as problem:
        raise RunError(
            f"{path} is damaged ({in_one_line(problem)}): restore it from a copy, or remove it if the logs "
            "are still there"
        ) from problem


def _log(jobs: list[Job], out: Path) -> Log:
    """Every value is a mean over players, so a player with many short episodes counts once. A player whose
    seed another log has too gets the next free number."""
    folders = {job.data_folder(out): job for job in jobs}
    whole = {folder: Dataset.open(folder) for folder in folders}
    learned: dict[str, dict[Path, Job]] = {}
    for job in jobs:
        if job.label:
            learned.setdefault(job.part, {})[job.data_folder(out)] = job
    best, average = {}, {}
    for part, mine in learned.items():
        logs = [log for folder, job in mine.items() for log in parts_of(job, whole[folder])]
        if played := [each for each in map(_returns, logs) if len(each)]:
            best[part] = float(np.mean([best_policy_return(each) for each in played]))
            average[part] = float(np.mean([each.mean() for each in played]))
    finals: dict[int, float] = {}
    evaluated: dict[int, Curve] = {}
    for folder, job in folders.items():
        log, kept = whole[folder], best_players(job, whole[folder])
        seeds = kept or log.provenance.get("seeds") or [0]
        for seed, returns in zip(seeds, map(final_returns, players_of(job, log)), strict=False):
            if len(returns):
                finals[_number(seed, finals)] = float(returns.mean())
        if (folder / "agent" / "episodes.csv").exists():
            for seed, curve in curves(folder / "agent").items():
                if not kept or seed in kept:
                    evaluated[_number(seed, evaluated)] = curve
    if not all((folder / "agent" / "episodes.csv").exists() for folder in folders):
        evaluated = {}  # the players of some logs alone would not be those of the study
    together = mean_curve(evaluated) if evaluated else {}
    return Log(
        player=float(np.mean(list(finals.values()))) if finals else None,
        best=best,
        average=average,
        evaluation=max(together.values(), default=None),
        players={str(seed): max(curve.values()) for seed, curve in evaluated.items()},
        exploring={str(seed): final for seed, final in finals.items()},
        agent=" and ".join(sorted({_player_of(log.provenance) for log in whole.values()})),
    )


def _number(seed: int, taken: Mapping[int, Any]) -> int:
    return max(taken) + 1 if seed in taken else seed


def _player_of(provenance: Mapping[str, Any]) -> str:
    """The name of the agent that played a log of ours, or of the paper; "" for any other log."""
    if provenance.get("format") == IMPORTED:
        return "dqn"
    agent = provenance.get("agent")
    return str(agent.get("name", "")) if isinstance(agent, dict) and "collection" in provenance else ""


def _returns(dataset: Dataset) -> np.ndarray:
    """Returns of the complete episodes, in the order of play."""
    episodes = dataset.episodes
    return episodes.returns[episodes.complete][np.argsort(episodes.time[episodes.complete])]
