"""Compare and pool two repetitions of the same agents on the same logs.

    python docs/results/asymptotic/repetition.py > docs/results/asymptotic/repetition.csv

IQM is the mean of the middle half of all runs. Pooled: the mean of both repetitions for each game and log.
The bounds are 95% bootstrap intervals (`resampling.py`). The share of the log is the correlation of the two
repetitions within games, over the games whose logs are equal in both.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call, print_table
from resampling import CROSS, LAST, first, interval, scores, tables

FOLDERS = "epsilon-and-heads", "asymptotic"
AGENTS = "DQN (Adam)", "QR-DQN", "REM", "Cloning"
PAIRS = ("REM", "DQN (Adam)"), ("REM", "QR-DQN"), ("QR-DQN", "DQN (Adam)")
OTHER_LOGS = "minatar_jax/breakout"  # two of its five players differ between the repetitions
COLUMNS = [f"{which}{end}" for which in ("first", "second", "pooled") for end in ("", "_low", "_high")]
HEADS = ["reading", "score", "agent", "minus", *COLUMNS, "share_of_log"]


def share_of_log(one, other):
    """The correlation of two (seeds, games) tables within games, each game scaled to the same spread."""
    one, other = one - one.mean(0), other - other.mean(0)
    spread = np.sqrt((one**2 + other**2).sum(0))
    one, other = one / spread, other / spread
    return 2 * (one * other).sum() / (one**2 + other**2).sum()


def lines():
    games = list(scores(FOLDERS[0])["REM"])
    equal = [number for number, game in enumerate(games) if game != OTHER_LOGS]
    for reading, evaluations in (("1X", 5), ("5X", 25)):
        for measure in CROSS, LAST, "mean of all":
            found = {
                agent: tables(measure, *(first(evaluations, scores(folder)[agent]) for folder in FOLDERS))
                for agent in AGENTS
            }
            for agent, both in found.items():
                numbers = [number for some in (both[:1], both[1:], both) for number in interval(some)]
                share = share_of_log(*(np.asarray(each)[:, equal] for each in both))
                yield [reading, measure, agent, "", *(f"{each:.4f}" for each in numbers), f"{share:.2f}"]
            for agent, other in PAIRS:
                parts = slice(0, 1), slice(1, 2), slice(0, 2)
                pairs = (interval(found[agent][part], found[other][part]) for part in parts)
                numbers = [f"{number:.4f}" for each in pairs for number in each]
                yield [reading, measure, agent, other, *numbers, ""]


if __name__ == "__main__":
    call(__doc__, lambda: print_table(HEADS, lines()))
