"""Plays every kept policy of a finished study again, and writes down what is known about each of them.

    python docs/results/selection/replay.py studies/selection-mini [more studies]

Every policy plays 500 fresh episodes, which neither training nor selection has seen; they are kept in
STUDY/truth. `policies.csv` has one row for each policy: its mean return in them (`truth`), in the first half
of them, its standard error, the mean of the evaluation during training, and every score of `optimist select`.
`evaluations.npz` has the 100 returns of each evaluation during training, in the order of the rows.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
EPISODES, TOGETHER = 500, 5  # kept steps that play in one program
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


def played(folder: Path, kept: Path) -> tuple[list[int], list[int], np.ndarray]:
    """Steps, seeds, and returns (steps, seeds, episodes) of the policies in a run's folder."""
    if not kept.exists():
        import jax
        import jax.numpy as jnp

        from optimist.training.evaluation import evaluate
        from optimist.training.selection.candidates import read_sources

        (source,) = read_sources([folder])
        steps, seeds, found = list(source.run.kept), list(source.run.seeds), []
        for first in range(0, len(steps), TOGETHER):
            some = steps[first : first + TOGETHER]
            params = jax.tree.map(lambda *leaf: jnp.concatenate(leaf), *map(source.params, some))
            fresh = 10_000 + 1_000 * first  # no evaluation during training has this stream
            rows = evaluate(
                source.run.learner,
                params,
                source.run.playable(""),
                seeds=tuple(range(fresh, fresh + len(some) * len(seeds))),
                episodes=EPISODES,
                epsilon=float(source.training["epsilon"]),
                step=7,
            )
            found.append(np.array([row.score for row in rows]).reshape(len(some), len(seeds), EPISODES))
        kept.parent.mkdir(exist_ok=True)
        np.savez_compressed(kept, steps=steps, seeds=seeds, score=np.concatenate(found).astype(np.float32))
    loaded = np.load(kept)
    return loaded["steps"].tolist(), loaded["seeds"].tolist(), loaded["score"].astype(float)


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
        steps, seeds, score = played(folder, study / "truth" / f"{game}__{agent}.npz")
        during, scores = evaluated(folder), {}
        if (folder / "selection.json").exists():
            selected = json.loads((folder / "selection.json").read_text())["candidates"]
            scores = {(each["step"], each["seed"]): each["scores"] for each in selected}
        for place, seed in enumerate(seeds):
            for number, step in enumerate(steps):
                own, evaluation = score[number, place], during[step, seed]
                row = {"game": job["environment"], "agent": job["label"], "seed": seed, "step": step}
                row |= {"truth": round(own.mean(), 4), "first_half": round(own[: len(own) // 2].mean(), 4)}
                row |= {"error": round(own.std(ddof=1) / len(own) ** 0.5, 4)}
                row |= {"evaluation": round(float(np.mean(evaluation)), 4)}
                mine = scores.get((step, seed), {})
                row |= {rule: _short(mine.get(name)) for name, rule in SCORES.items()}
                rows.append((row, evaluation))
    return rows


def _short(score: float | None) -> str:
    return "" if score is None else f"{score:.5g}"


if __name__ == "__main__":
    found = [row for study in sys.argv[1:] for row in policies(Path(study))]
    with open(HERE / "policies.csv", "w", newline="") as file:
        table = csv.DictWriter(file, found[0][0], lineterminator="\n")
        table.writeheader()
        table.writerows(row for row, _ in found)
    np.savez_compressed(
        HERE / "evaluations.npz", returns=np.array([each for _, each in found], np.float32).astype(np.int16)
    )
