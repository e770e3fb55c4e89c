"""Returns in the logs of a study: final play of the players, and best and average of each part."""

import json
from collections.abc import Callable, Mapping, Sequence
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
from optimist.studies.job import Job
from optimist.studies.job_run import best_players, parts_of, players_of
from optimist.studies.players import final_returns
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
    """Every value is a mean over players, so a player with many short episodes counts once."""
    folders = {job.data_folder(out): job for job in jobs}
    whole = {folder: Dataset.open(folder) for folder in folders}
    learned: dict[str, dict[Path, Job]] = {}
    for job in jobs:
        if job.label:
            learned.setdefault(job.part, {})[job.data_folder(out)] = job
    logs = {
        part: [log for folder, job in mine.items() for log in parts_of(job, whole[folder])]
        for part, mine in learned.items()
    }
    finals = _final([(whole[folder], job) for folder, job in folders.items()])
    evaluated = _evaluated([(folder, best_players(job, whole[folder])) for folder, job in folders.items()])
    together = mean_curve(evaluated) if evaluated else {}
    return Log(
        player=float(np.mean(list(finals.values()))) if finals else None,
        best=_by_part(best_policy_return, logs),
        average=_by_part(_average, logs),
        evaluation=max(together.values(), default=None),
        players={str(seed): max(curve.values()) for seed, curve in evaluated.items()},
        exploring={str(seed): final for seed, final in finals.items()},
        agent=" and ".join(sorted({_player_of(log.provenance) for log in whole.values()})),
    )


def _player_of(provenance: Mapping[str, Any]) -> str:
    """The name of the agent that played a log of ours, or of the paper; "" for any other log."""
    if provenance.get("format") == IMPORTED:
        return "dqn"
    agent = provenance.get("agent")
    return str(agent.get("name", "")) if isinstance(agent, dict) and "collection" in provenance else ""


def _evaluated(logs: Sequence[tuple[Path, Sequence[int]]]) -> dict[int, Curve]:
    """The evaluations of the players during collection, of the kept ones if a log names any; empty if some
    log has none."""
    found: dict[int, Curve] = {}
    for folder, kept in logs:
        if not (folder / "agent" / "episodes.csv").exists():
            return {}
        for seed, curve in curves(folder / "agent").items():
            if not kept or seed in kept:
                found[_number(seed, found)] = curve
    return found


def _final(logs: Sequence[tuple[Dataset, Job]]) -> dict[int, float]:
    """The mean return of each player at the end of its log, numbered as `_evaluated` numbers them."""
    found: dict[int, float] = {}
    for log, job in logs:
        seeds = best_players(job, log) or log.provenance.get("seeds") or [0]
        for seed, returns in zip(seeds, map(final_returns, players_of(job, log)), strict=False):
            if len(returns):
                found[_number(seed, found)] = _average(returns)
    return found


def _number(seed: int, taken: Mapping[int, Any]) -> int:
    """A player whose seed another log has too gets the next free number."""
    return max(taken) + 1 if seed in taken else seed


def _average(returns: np.ndarray) -> float:
    return float(returns.mean())


def _by_part(worth: Callable[[np.ndarray], float], logs: dict[str, list[Dataset]]) -> dict[str, float]:
    """For each part the mean over its logs that have complete episodes."""
    worths = {part: [worth(each) for each in map(_returns, mine) if len(each)] for part, mine in logs.items()}
    return {part: float(np.mean(values)) for part, values in worths.items() if values}


def _returns(dataset: Dataset) -> np.ndarray:
    """Returns of the complete episodes, in the order of play."""
    episodes = dataset.episodes
    return episodes.returns[episodes.complete][np.argsort(episodes.time[episodes.complete])]
