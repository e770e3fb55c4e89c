"""The returns of the players of a log, written beside it while the log is there: it is too large to keep.

    python docs/results/study_players.py STUDY/logs/NAME

players.csv has for each player the mean return of its last tenth and of its whole log, exploration included.
"""

from pathlib import Path

from command import call
from gathering import write

from optimist.data.dataset import Dataset
from optimist.studies.players import ranked


def main(log: Path) -> None:
    dataset = Dataset.open(log)
    game = dataset.provenance["environment"]
    rows = [[game, player.seed, player.final_return, player.mean_return] for player in ranked(dataset)]
    write(log / "players.csv", ["game", "seed", "final_return", "mean_return"], rows)


if __name__ == "__main__":
    call(__doc__, main)
