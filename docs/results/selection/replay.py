"""Plays every kept policy of a finished study again, and writes down what is known about each of them.

    python docs/results/selection/replay.py studies/selection-mini [more studies]

Every policy plays 500 fresh episodes, which neither training nor selection has seen; they are kept in
STUDY/truth. `policies.csv` has one row for each policy: its mean return in them (`truth`), in the first half
of them, its standard error, the mean of the evaluation during training, and every score of `optimist select`.
Two means of the same episodes tell the error of FQE from that of its measure: `clipped` sums the rewards as
training clips them, and `discounted` is what FQE estimates, the discounted sum of the clipped rewards.
`evaluations.npz` has the 100 returns of each evaluation during training, in the order of the rows. Games that
are not in these studies keep the rows they have. The rules sbv, bvft and drift were removed from
`optimist select` after this study: a replay of a new selection leaves their columns empty.
"""

import csv
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call

from optimist import envs
from optimist.choosing.candidates import Source, read_sources
from optimist.training.learner import SIDE_BY_SIDE
from optimist.training.play.acting import act, blank, look_and_choose

HERE = Path(__file__).parent
EPISODES, TOGETHER = 500, 5  # kept steps that play in one program
SUMS = ("score", "clipped", "discounted")
SCORES = {
    "cautious": "cautious",
    "supported": "supported",
    "fqe": "fqe",
    "support": "support",
    "bellman_error": "sbv",
    "tournament_loss": "bvft",
    "overestimation": "drift",
    "agreement": "agreement",
}


def played(folder: Path, kept: Path) -> tuple[list[int], list[int], dict[str, np.ndarray]]:
    """Steps, seeds, and the sums of rewards (steps, seeds, episodes) of the policies in a run's folder."""
    if not kept.exists():
        (source,) = read_sources([folder])
        steps, seeds = list(source.run.kept), list(source.run.seeds)
        found = [
            _fresh(source, steps[first : first + TOGETHER], first) for first in range(0, len(steps), TOGETHER)
        ]
        kept.parent.mkdir(exist_ok=True)
        sums = np.concatenate(found, axis=1).astype(np.float32)
        np.savez_compressed(kept, steps=steps, seeds=seeds, **dict(zip(SUMS, sums, strict=True)))
    loaded = np.load(kept)
    sums = {name: loaded[name].astype(float) for name in SUMS if name in loaded}
    return loaded["steps"].tolist(), loaded["seeds"].tolist(), sums


def _fresh(source: Source, steps: list[int], first: int) -> np.ndarray:
    """The sums of fresh episodes of the policies of some kept steps, (SUMS, steps, seeds, EPISODES)."""
    params = jax.tree.map(lambda *leaf: jnp.concatenate(leaf), *map(source.params, steps))
    policies = len(steps) * len(source.run.seeds)
    stream = 10_000 + first  # no evaluation during training has this stream
    play: Any = envs.make(source.run.playable(""), lanes=policies * EPISODES, seed=stream)
    sums = _sums(
        play.rules,
        source.run.learner,
        policies,
        params,
        play.begin(),
        key=jax.random.PRNGKey(stream),
        epsilon=float(source.training["epsilon"]),
        limit=float(source.training["clip_rewards"]),
        gamma=float(source.training["gamma"]),
    )
    return np.asarray(sums).reshape(len(SUMS), len(steps), -1, EPISODES)


@partial(jax.jit, static_argnames=("rules", "learner", "policies"), compiler_options=SIDE_BY_SIDE)
def _sums(rules, learner, policies: int, params, table, *, key, epsilon, limit, gamma) -> Any:
    """One episode in every lane, (SUMS, lanes)."""
    lanes = table.frames.shape[0]

    def turn(now):
        table, seen, began, over, sums, number = now
        how = (params, seen, table.frames, began, epsilon, key, number)
        chosen, seen = look_and_choose(learner, policies, act, *how)
        table, taken = rules.step(table, chosen.reshape(-1))
        reward, ended = jnp.where(over, 0, taken.reward), taken.terminal | taken.truncated
        clipped = jnp.clip(reward, -limit, limit)
        sums += jnp.stack([reward, clipped, gamma**number * clipped])
        return table, seen, ended, over | ended, sums, number + 1

    start = (table, blank(learner.spec, lanes), jnp.ones(lanes, bool), jnp.zeros(lanes, bool))
    end = jax.lax.while_loop(lambda now: ~now[3].all(), turn, (*start, jnp.zeros((3, lanes)), jnp.int32(0)))
    return end[4]


def evaluated(folder: Path) -> dict[tuple[int, int], list[float]]:
    """The returns of every evaluation during training, by step and seed."""
    found: dict[tuple[int, int], list[float]] = {}
    with open(folder / "episodes.csv") as file:
        for row in csv.DictReader(file):
            found.setdefault((int(row["step"]), int(row["seed"])), []).append(float(row["return"]))
    return found


def policies(study: Path) -> list[tuple[dict, list[float]]]:
    """A row and the evaluation's returns for every kept policy."""
    rows = []
    for job in json.loads((study / "study.json").read_text())["jobs"]:
        if not job["label"] or job["data"] is None:
            continue
        folder = study / job["name"]
        _, _, game, _, agent = ("/" + job["name"]).split("/")
        steps, seeds, sums = played(folder, study / "truth" / f"{game}__{agent}.npz")
        during, scores = evaluated(folder), {}
        if (folder / "selection.json").exists():
            selected = json.loads((folder / "selection.json").read_text())["candidates"]
            scores = {(each["step"], each["seed"]): each["scores"] for each in selected}
        for place, seed in enumerate(seeds):
            for number, step in enumerate(steps):
                own, evaluation = sums["score"][number, place], during[step, seed]
                row = {"game": job["environment"], "agent": job["label"], "seed": seed, "step": step}
                row |= {"truth": round(own.mean(), 4), "first_half": round(own[: len(own) // 2].mean(), 4)}
                row |= {"error": round(own.std(ddof=1) / len(own) ** 0.5, 4)}
                row |= {"evaluation": round(float(np.mean(evaluation)), 4)}
                row |= {name: round(float(sums[name][number, place].mean()), 4) for name in SUMS[1:]}
                mine = scores.get((step, seed), {})
                row |= {rule: _short(mine.get(name)) for name, rule in SCORES.items()}
                rows.append((row, evaluation))
    return rows


def _short(score: float | None) -> str:
    return "" if score is None else f"{score:.5g}"


def known(fresh_games: set[str]) -> list[tuple[dict, list[float]]]:
    """The rows and evaluations of the other games, as they were written before."""
    if not (HERE / "policies.csv").exists():
        return []
    with open(HERE / "policies.csv") as file:
        rows = list(csv.DictReader(file))
    returns = np.load(HERE / "evaluations.npz")["returns"].tolist()
    return [pair for pair in zip(rows, returns, strict=True) if pair[0]["game"] not in fresh_games]


def main(study: Path, *more: Path) -> None:
    fresh = [row for each in (study, *more) for row in policies(each)]
    found = known({row["game"] for row, _ in fresh}) + fresh
    with open(HERE / "policies.csv", "w", newline="") as file:
        table = csv.DictWriter(file, fresh[0][0], restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(row for row, _ in found)
    np.savez_compressed(
        HERE / "evaluations.npz", returns=np.array([each for _, each in found], np.float32).astype(np.int16)
    )


if __name__ == "__main__":
    call(__doc__, main)
