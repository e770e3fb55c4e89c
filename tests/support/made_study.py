"""A study written by hand: run folders whose every number a test can work out with plain loops."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from little import random_play
from optimist.choosing.estimators import available
from optimist.cli.main import main
from optimist.data import Recorder, Spec
from optimist.studies.engines import local
from optimist.studies.job import Job
from optimist.studies.results.findings import StudyResults
from optimist.studies.status import write_jobs
from optimist.studies.work import performed
from optimist.training.storage.configuration import toml
from optimist.training.storage.selected import write_selection

# The file of a study that ends in seconds; {steps} are those of its training.
STUDY = """
title = "A little study"
recipe = "small"
seeds = 1

[agents]
"DQN" = {{ agent = "dqn", options = {{ network = "mlp" }} }}
"REM" = {{ agent = "rem", options = {{ network = "mlp", columns = 4 }} }}

[scales.tiny]
environments = ["minatar/breakout"]
training = {{ steps = {steps}, evaluate_every = 50, episodes = 1, batch = 8, checkpoint_seconds = 0.0 }}
[scales.tiny.collect]
agent = "dqn"
options = {{ network = "mlp" }}
settings = {{ steps = 600, lanes = 4, warm_up = 40, batch = 8 }}
"""


def study_words(folder: Path, out: Path | str, *more: str, steps: int = 100) -> list[str]:
    """The command that runs this study, whose file it writes."""
    (folder / "little.toml").write_text(STUDY.format(steps=steps))
    return ["study", "run", str(folder / "little.toml"), "--scale", "tiny", "--out", str(out), *more]


def run_here(jobs: list[Job], out: Path, options) -> None:
    """In place of the local engine's `run`: the jobs in this process, one after the other."""
    for job in jobs:
        assert performed(job, out, 0) == ""


def performed_here(out: Path, **size: int) -> Path:
    """This study as one process of this machine performs it."""
    out.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "run", run_here)
        assert main(study_words(out, out, **size)) == 0
    return out


def tables(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "results/all").iterdir()}


SPEC = Spec((2, 1, 1), "uint8", actions=2)
GAMES = ("minatar/breakout", "minatar/freeway", "minatar/asterix")
AGENTS = ("DQN (Nature)", "QR-DQN", "REM")
SEEDS = (0, 1, 2)
STEPS = (100, 200, 300, 400)
PLAYER, RANDOM = 20.0, 2.0
VERSIONS = {"python": "3.11.7", "optimist": "0.1.0", "jax": "0.10.2", "device": "cpu", "dataset": "abc"}
EPISODES = (-1.0, 1.0)  # around the mean of an evaluation


def height(game: str, agent: str, seed: int, step: int, lift: float = 0.0) -> float:
    """The mean return of one evaluation: agents differ, seeds spread, and the last is not the best."""
    rise = {100: 0.2, 200: 0.6, 300: 1.0, 400: 0.8}[step]
    top = 10 + 4 * AGENTS.index(agent) + 2 * GAMES.index(game) + 1.5 * seed
    return top * rise + lift


def jobs(
    parts: tuple[str, ...] = ("all",), agents=AGENTS, games=GAMES, batch: int = 32, logs: str = "whole"
) -> list[Job]:
    found = []
    for game in games:
        log, common = f"logs/{game}", {"environment": game, "preset": None, "recipe": "small"}
        found += [
            Job(name=log, agent="dqn", seeds=(0,), **common),
            Job(name=f"random/{game}", agent="random", seeds=(0,), data=log, needs=(log,), **common),
        ]
        found += [
            Job(
                name=f"runs/{game}/{part}/{agent}",
                agent="dqn",
                seeds=SEEDS,
                data=log,
                needs=(log,),
                label=agent,
                part=part,
                view={} if part == "all" else {"fraction": 0.5},
                settings={
                    "steps": STEPS[-1],
                    "evaluate_every": STEPS[0],
                    "batch": batch,
                    **({"data_per_seed": logs} if logs == "own" else {}),
                },
                **common,
            )
            for part in parts
            for agent in agents
        ]
    return found


def write_study(out: Path, *, lift: float = 0.0, batch: int = 32, said: dict | None = None, **grid) -> Path:
    """Every run folder as a finished run leaves it, and the list of them."""
    for job in jobs(batch=batch, **grid):
        folder = job.run_folder(out)
        folder.mkdir(parents=True)
        if job.plays:
            _log(out / job.name)
        elif job.agent == "random":
            _episodes(folder, [(1, 0, RANDOM)])
        else:
            rows = [(step, seed) for step in STEPS for seed in SEEDS]
            heights = [
                (step, seed, height(job.environment, job.label, seed, step, lift)) for step, seed in rows
            ]
            _episodes(folder, heights)
        (folder / "config.toml").write_text(toml(job.expected({})))
        (folder / "versions.json").write_text(json.dumps(VERSIONS))
        (folder / "DONE").touch()
    write_jobs(out, "A study made by hand", jobs(batch=batch, **grid), **(said or {}))
    return out


def empty_drawings(findings: StudyResults, name: str) -> list[tuple[str, str, Figure]]:
    """In place of `study_figures.drawings`: real figures take seconds to draw."""
    return [(f"{each.name}/{name}", name, Figure(figsize=(6, 3))) for each in findings.longest]


def fqe(step: int, seed: int) -> float:
    """An estimator that prefers the last step for seed 0, and the best one, 300, for the others."""
    return {100: 1.0, 200: 2.0, 300: 3.0, 400: 4.0 if seed == 0 else 0.0}[step]


def write_selections(out: Path, agents: tuple[str, ...] = AGENTS, updates: int = 50) -> Path:
    """A selection.json in every run of these agents: FQE as above, all other scores unknown."""
    unknown = dict.fromkeys(available())
    candidates = [
        {"step": step, "seed": seed, "scores": unknown | {"fqe": fqe(step, seed), "support": 1.0}}
        for step in STEPS
        for seed in SEEDS
    ]
    candidates.sort(key=lambda each: -each["scores"]["fqe"])
    for job in jobs():
        if job.label in agents:
            facts = {
                "rule": "fqe",
                "updates": updates,
                "answer": "ship the first",
                "notes": ["a note", f"a note about {job.environment}"],
            }
            facts["chosen"] = {name: candidates[0][name] for name in ("step", "seed")}
            write_selection(job.run_folder(out), {**facts, "candidates": candidates})
    return out


def _episodes(folder: Path, heights: list[tuple[int, int, float]]) -> None:
    lines = [
        f"{step},{seed},{episode},{mean + around!r},7"
        for step, seed, mean in heights
        for episode, around in enumerate(EPISODES)
    ]
    (folder / "episodes.csv").write_text("\n".join(["step,seed,episode,return,length", *lines]) + "\n")


def _log(folder: Path) -> None:
    """Twenty episodes of one step; all return what the player scores in the end."""
    ends = np.ones(1, bool)
    with Recorder(folder, SPEC, lanes=1) as recorder:
        for step in random_play(SPEC, rows=20, lanes=1):
            recorder.add(step[0], step[1], np.full(1, PLAYER, np.float32), ends, ~ends, step[5])
