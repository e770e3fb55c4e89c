"""Seconds for the page of a study of the paper's size: 300 runs of 5 seeds, 200 evaluations each.

The study is synthetic: its curves rise and level off, at heights that differ by game, agent and seed.
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np

from optimist.data import Recorder, Spec
from optimist.studies.job import Job
from optimist.studies.report.study_report import write_findings
from optimist.studies.status import write_jobs

GAMES = int(os.environ.get("GAMES", 60))
AGENTS = ("DQN (Nature)", "DQN (Adam)", "Ensemble-DQN", "QR-DQN", "REM")
SEEDS, EVALUATIONS, EPISODES, EVERY = 5, 200, 10, 62_500
SPEC = Spec((2, 1, 1), "uint8", actions=2)
VERSIONS = '{"python": "3", "optimist": "0", "jax": "0", "device": "none", "platform": "none"}'


def make_study(out: Path) -> list[Job]:
    """Write the run folders of a finished study, and logs of a few episodes."""
    random, jobs = np.random.default_rng(0), []
    for number in range(GAMES):
        game, log = f"atari/Game{number:02}", f"logs/{number}"
        common = {"environment": game, "preset": None, "recipe": "paper"}
        jobs += [
            Job(name=log, agent="dqn", seeds=(0,), **common),
            Job(name=f"random/{number}", agent="random", seeds=(0,), data=log, needs=(log,), **common),
            *(
                Job(
                    name=f"runs/{number}/{place}",
                    agent="dqn",
                    seeds=tuple(range(SEEDS)),
                    data=log,
                    needs=(log,),
                    label=agent,
                    part="all",
                    **common,
                )
                for place, agent in enumerate(AGENTS)
            ),
        ]
    for job in jobs:
        _perform(job, out, random)
    steps = EVALUATIONS * EVERY
    write_jobs(
        out,
        "A synthetic study",
        jobs,
        read_at={"1X": steps // 5, "5X": steps},
        figures=("medians", "bars", "profiles", "curves"),
    )
    return jobs


def _perform(job: Job, out: Path, random: np.random.Generator) -> None:
    folder = job.run_folder(out)
    folder.mkdir(parents=True)
    if job.plays:
        _log(out / job.name, random)
    else:
        heights = [0.1] if job.agent == "random" else random.uniform(0.5, 1.5, size=SEEDS)
        _episodes(folder / "episodes.csv", heights, random)
    (folder / "versions.json").write_text(VERSIONS)
    (folder / "DONE").touch()


def _log(path: Path, random: np.random.Generator) -> None:
    ends, frame = np.ones(1, bool), np.zeros((1, *SPEC.frame_shape), np.uint8)
    with Recorder(path, SPEC, lanes=1) as recorder:
        for reward in np.linspace(10, 100, 50):
            recorder.add(frame, np.zeros(1, int), np.full(1, reward, np.float32), ends, ~ends, frame)


def _episodes(path: Path, heights, random: np.random.Generator) -> None:
    looks = np.arange(1, EVALUATIONS + 1)
    lines = ["step,seed,episode,return,length"]
    for seed, height in enumerate(heights):
        means = 100 * height * (1 - np.exp(-looks / 40))
        returns = random.normal(means[:, None], 15, (EVALUATIONS, EPISODES)).round(1).tolist()
        lines += [
            f"{look * EVERY},{seed},{episode},{score},1000"
            for look, row in zip(looks.tolist(), returns, strict=True)
            for episode, score in enumerate(row)
        ]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        runs = sum(bool(job.label) for job in make_study(out))
        start, busy = time.perf_counter(), time.process_time()
        write_findings(out)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        size = (out / "report.html").stat().st_size / 2**20
    rows = runs * SEEDS * EVALUATIONS * EPISODES
    print(f"the report of {runs} runs, {EVALUATIONS} evaluations each, {rows:,} episodes, read at 1X and 5X:")
    print(f"  {seconds:.1f} s, {busy:.1f} s of processor time (promised: under 60); a page of {size:.1f} MiB")
