"""Section 6 of the paper: what an agent's whole experience is worth to DDPG, TD3 and BCQ, offline.

DDPG plays with strong noise from many seeds; the logs of the best become the datasets, one offline run of
each agent on each. Everything is kept in run folders, and the figure is drawn from those alone.
"""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optimist import envs
from optimist.agents import available, preset
from optimist.data.files import write_whole
from optimist.data.store import Dataset
from optimist.errors import RunError, UsageError, did_you_mean
from optimist.studies import scores
from optimist.training.offline import OfflineTraining
from optimist.training.online import OnlineTraining
from optimist.training.progress import console
from optimist.training.scales import SCALES

PLAYER = "ddpg"
FINAL_SHARE = 0.1  # of a player's log: how it played in the end, by which the best are chosen


@dataclass(frozen=True)
class FinalBuffer:
    """Offline agents on the whole experience of DDPG; the defaults are the paper's"""

    tasks: str = "HalfCheetah,Hopper,Walker2d"
    agents: str = "ddpg,td3,bcq"
    players: int = 15  # seeds of the online DDPG
    kept: int = 5  # of them, the best: their logs are the datasets
    steps: int = 1_000_000  # of each player
    lanes: int = 8  # environments of each player, side by side
    updates: int = 1_000_000  # of each offline agent
    evaluate_every: int = 5_000
    episodes: int = 10  # per evaluation and run

    def __post_init__(self):
        if not 1 <= self.kept <= self.players:
            raise UsageError(f"{self.kept} of {self.players} players cannot be kept: 1 to {self.players}")
        for asked, known in ((self.environments(), envs.available()), (self.agents.split(","), available())):
            for name in asked:
                if name not in known:
                    raise UsageError(f'there is no "{name}": {did_you_mean(name, known)}')

    def environments(self) -> list[str]:
        return [f"mujoco/{task}" for task in self.tasks.split(",")]


class Player(NamedTuple):
    """One online seed: how it played in the end, and what is in its log on average."""

    seed: int
    final_return: float
    mean_return: float


class Panel(NamedTuple):
    """One task's results: a run folder per agent, and the mean return of the episodes in the data."""

    environment: str
    runs: dict[str, Path]
    data_return: float


def run(study: FinalBuffer, out: Path) -> list[Panel]:
    """Everything, task by task; the same call again goes on where it stopped."""
    for environment in study.environments():
        console.print(f"[bold]{environment}[/]: {study.players} players, each for {study.steps:,} steps")
        home = _home(out, environment)
        _collect(study, environment, home)
        dataset = Dataset.open(home / "data")
        best = ranked(dataset)[: study.kept]
        _write_players(home / "players.json", best)
        console.print(
            f"the logs of seeds {', '.join(str(player.seed) for player in best)} are the datasets: "
            f"{np.mean([player.mean_return for player in best]):.0f} on average"
        )
        for agent in study.agents.split(","):
            _train(study, agent, dataset, best, home)
    return panels(study, out)


def panels(study: FinalBuffer, out: Path) -> list[Panel]:
    """What the run folders hold, whoever filled them; tasks that are not there yet are left out."""
    found = []
    for environment in study.environments():
        home = _home(out, environment)
        runs = {
            name: home / name for name in study.agents.split(",") if (home / name / "episodes.csv").exists()
        }
        if runs:
            players = json.loads((home / "players.json").read_text())
            data_return = float(np.mean([player["mean_return"] for player in players]))
            found.append(Panel(environment, runs, data_return))
    if not found:
        raise RunError(f"{out} holds no runs of this study yet")
    return found


def ranked(dataset: Dataset) -> list[Player]:
    """The players of a recording, the best first: by the episodes in the last tenth of what each did."""
    seeds = dataset.provenance["seeds"]
    steps = len(dataset) // len(seeds)
    players = []
    for seed in seeds:
        log = dataset.played_by(seed)
        final = log.last(max(1, int(FINAL_SHARE * steps)))
        players.append(Player(seed, _mean_return(final, otherwise=log), _mean_return(log, otherwise=log)))
    return sorted(players, key=lambda player: player.final_return, reverse=True)


def _mean_return(log: Dataset, *, otherwise: Dataset) -> float:
    """Over complete episodes; where a short log has none, over the pieces there are."""
    episodes = log.episodes
    chosen = episodes.returns[episodes.complete] if episodes.complete.any() else otherwise.episodes.returns
    return float(chosen.mean())


def _collect(study: FinalBuffer, environment: str, home: Path) -> None:
    usual = SCALES["control"].collection
    collection = replace(
        usual, steps=study.steps, lanes=study.lanes, warm_up=min(usual.warm_up, study.steps // 4)
    )
    OnlineTraining(
        preset(PLAYER), environment, collection, out=home / "data", seeds=tuple(range(study.players))
    ).run()


def _train(study: FinalBuffer, agent: str, dataset: Dataset, best: list[Player], home: Path) -> None:
    training = replace(
        SCALES["control"].training,
        steps=study.updates,
        evaluate_every=study.evaluate_every,
        episodes=study.episodes,
        log="own",
    )
    OfflineTraining(
        preset(agent),
        dataset,
        training,
        out=home / agent,
        seeds=tuple(player.seed for player in best),
        environment=dataset.provenance["environment"],
    ).run()


def _home(out: Path, environment: str) -> Path:
    return out / environment.removeprefix("mujoco/")


def _write_players(path: Path, players: list[Player]) -> None:
    write_whole(path, json.dumps([player._asdict() for player in players], indent=2).encode())


def mean_and_deviation(run: Path) -> dict[int, tuple[float, float]]:
    """At each evaluation, the mean over the seeds and their standard deviation, as Figure 8 shows them."""
    by_seed = scores.curves(run)
    shared = sorted(set.intersection(*(set(curve) for curve in by_seed.values())))
    values = {step: [curve[step] for curve in by_seed.values()] for step in shared}
    return {step: (float(np.mean(each)), float(np.std(each))) for step, each in values.items()}


def table(found: list[Panel]) -> str:
    """Every point of the figure as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["environment", "agent", "step", "mean_return", "standard_deviation", "data_return"])
    for panel in found:
        for agent, run in panel.runs.items():
            for step, (mean, deviation) in mean_and_deviation(run).items():
                writer.writerow(
                    [
                        panel.environment,
                        agent,
                        step,
                        f"{mean:.2f}",
                        f"{deviation:.2f}",
                        f"{panel.data_return:.2f}",
                    ]
                )
    return text.getvalue()


def summaries(panel: Panel) -> Mapping[str, scores.Summary]:
    return {agent: scores.summary(scores.scores(run)) for agent, run in panel.runs.items()}
