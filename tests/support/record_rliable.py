"""Writes tests/golden/rliable.json: what the rliable package makes of two small matrices of scores.

Run by hand, where rliable is installed (we never import it):
    python3 -m venv /tmp/rv && /tmp/rv/bin/pip install rliable==1.2.0 "pandas<3"  # arch 7.2 breaks with 3
    /tmp/rv/bin/python tests/support/record_rliable.py

Bounds are recorded from several seeds, so that a reader of the file knows how far chance alone moves them.
"""

import importlib.metadata
import json
from pathlib import Path

import numpy as np
from rliable import library, metrics

SEEDS = 8
THRESHOLDS = [0.0, 0.25, 0.5, 1.0, 2.0, 4.0]
PACKAGES = ("rliable", "arch", "pandas", "scipy", "numpy")


def score_matrices() -> tuple[np.ndarray, np.ndarray]:
    """Skewed scores, 5 and 3 runs on 10 games; on half the games one run of each scores the same."""
    random = np.random.default_rng(2021)
    level = random.normal(size=10)
    x = np.exp(level + 0.4 * random.normal(size=(5, 10))).round(4)
    y = np.exp(level + 0.4 * random.normal(size=(3, 10)) - 0.1).round(4)
    y[0, ::2] = x[0, ::2]
    return x, y


def recorded(function, scores, repetitions: int) -> dict:
    lows, highs = [], []
    for seed in range(SEEDS):
        np.random.seed(seed)  # rliable draws from the global state, whatever random_state it is given
        points, bounds = library.get_interval_estimates({"x": scores}, function, reps=repetitions)
        lows.append(bounds["x"][0].tolist())
        highs.append(bounds["x"][1].tolist())
    return {"repetitions": repetitions, "estimate": points["x"].tolist(), "low": lows, "high": highs}


def main() -> None:
    x, y = score_matrices()
    four = (metrics.aggregate_iqm, metrics.aggregate_median)
    four += (metrics.aggregate_mean, metrics.aggregate_optimality_gap)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    record = {
        "comment": f"made by tests/support/record_rliable.py with {', '.join(versions)}",
        "x": x.tolist(),
        "y": y.tolist(),
        "thresholds": THRESHOLDS,
        "aggregates": recorded(lambda s: np.array([function(s) for function in four]), x, 20_000),
        "performance_profile": recorded(lambda s: library.score_distributions(s, THRESHOLDS), x, 5_000),
        "probability_of_improvement": recorded(
            lambda *both: np.array([metrics.probability_of_improvement(*both)]), [x, y], 2_000
        ),
    }
    path = Path(__file__).parents[1] / "golden" / "rliable.json"
    path.write_text(json.dumps(record, indent=None, separators=(", ", ": ")).replace(', "', ',\n "') + "\n")


if __name__ == "__main__":
    main()
