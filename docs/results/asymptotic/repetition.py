"""Compare and pool two repetitions of the same agents on the same logs. Needs optimist.

    python docs/results/asymptotic/repetition.py > docs/results/asymptotic/repetition.csv

IQM is the mean of the middle half of all runs. Pooled: the mean of both repetitions for each game and log.
The bounds are 95% bootstrap intervals over logs, drawn game by game; every draw of the cross-chosen best
chooses again, in each repetition by itself, and the draws are centred on the estimate. The share of the log
is the correlation of the two repetitions within games, over the games whose logs are equal in both.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from optimist.studies.scores.cross_chosen import CrossChosen

HERE = Path(__file__).parent
FOLDERS = HERE.parent / "epsilon-and-heads", HERE
AGENTS = "DQN (Adam)", "QR-DQN", "REM", "Cloning"
OTHER_LOGS = "minatar_jax/breakout"  # two of its five players differ between the repetitions
DRAWS = 20_000
SEED = 12345


def curves(folder):
    """Normalised evaluations: {agent: {game: (seeds, evaluations)}}."""
    with open(folder / "normaliser.csv") as file:
        bounds = {row["game"]: (float(row["random"]), float(row["DQN"])) for row in csv.DictReader(file)}
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(folder / "scores.csv") as file:
        for row in csv.DictReader(file):
            zero, one = bounds[row["game"]]
            score = (float(row["score"]) - zero) / (one - zero)
            found[row["agent"]][row["game"]][int(row["seed"])][int(row["step"])] = score
    return {
        agent: {
            game: np.array([[seeds[seed][step] for step in sorted(seeds[seed])] for seed in sorted(seeds)])
            for game, seeds in sorted(games.items())
        }
        for agent, games in found.items()
        if agent in AGENTS
    }


def cross_chosen(runs):
    """Each seed at the evaluation that is best for the mean of the other seeds."""
    return np.array([run[np.delete(runs, i, 0).mean(0).argmax()] for i, run in enumerate(runs)])


MEASURES = {
    "cross-chosen best": cross_chosen,
    "last": lambda runs: runs[:, -1],
    "mean of all": lambda runs: runs.mean(1),
}


def iqm(pooled):
    count = pooled.shape[-1]
    return np.sort(pooled, -1)[..., count // 4 : count - count // 4].mean(-1)


def table(measure, runs):
    """The scores of one repetition, (seeds, games)."""
    scores = np.stack([measure(game) for game in runs], axis=1)
    return CrossChosen(scores, runs) if measure is cross_chosen else scores


def drawn(tables):
    """IQMs of bootstrap draws of the mean over repetitions; every call draws the same seeds, hence paired."""
    seeds, games = tables[0].shape
    picked = np.random.default_rng(SEED).integers(seeds, size=(DRAWS, seeds, games))
    each = [
        one.drawn(picked) if isinstance(one, CrossChosen) else one[picked, np.arange(games)] for one in tables
    ]
    return iqm(np.mean(each, axis=0).reshape(DRAWS, -1))


def interval(tables, minus=None):
    estimate, draws = iqm(np.mean(tables, axis=0).ravel()), drawn(tables)
    if minus is not None:
        estimate, draws = estimate - iqm(np.mean(minus, axis=0).ravel()), draws - drawn(minus)
    if isinstance(tables[0], CrossChosen):
        draws = draws - draws.mean() + estimate
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{estimate:.3f}", f"{low:.3f}", f"{high:.3f}"


def share_of_log(first, second):
    """The correlation of two (seeds, games) tables within games, each game scaled to the same spread."""
    first, second = first - first.mean(0), second - second.mean(0)
    spread = np.sqrt((first**2 + second**2).sum(0))
    first, second = first / spread, second / spread
    return 2 * (first * second).sum() / (first**2 + second**2).sum()


def main():
    repetitions = [curves(folder) for folder in FOLDERS]
    games = sorted(repetitions[0]["REM"])
    equal = [number for number, game in enumerate(games) if game != OTHER_LOGS]
    out = csv.writer(sys.stdout, lineterminator="\n")
    columns = [f"{which}{end}" for which in ("first", "second", "pooled") for end in ("", "_low", "_high")]
    out.writerow(["reading", "score", "agent", "minus", *columns, "share_of_log"])
    for reading, evaluations in (("1X", 5), ("5X", 25)):
        for name, measure in MEASURES.items():
            readings = {}
            for agent in AGENTS:
                both = [
                    table(measure, [one[agent][game][:, :evaluations] for game in games])
                    for one in repetitions
                ]
                readings[agent] = both[:1], both[1:], both
                share = share_of_log(*(np.asarray(each)[:, equal] for each in both))
                numbers = [number for tables in readings[agent] for number in interval(tables)]
                out.writerow([reading, name, agent, "", *numbers, f"{share:.2f}"])
            for agent, other in (("REM", "DQN (Adam)"), ("REM", "QR-DQN"), ("QR-DQN", "DQN (Adam)")):
                pairs = zip(readings[agent], readings[other], strict=True)
                numbers = [number for one, two in pairs for number in interval(one, minus=two)]
                out.writerow([reading, name, agent, other, *numbers, ""])


if __name__ == "__main__":
    main()
