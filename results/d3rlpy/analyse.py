"""The conservative agents beside those of d3rlpy: differences."""

from collections.abc import Iterator

import numpy as np
from results.library.scores import HEADS, of_seeds, read


def compared() -> Iterator[list]:
    rows = read("d3rlpy/returns.csv")

    def returns(game: str, agent: str, library: str) -> np.ndarray:
        """The mean return of each of five seeds."""
        names = (game, agent, library)
        mine = [each for each in rows if (each["game"], each["agent"], each["library"]) == names]
        return np.array([float(each["return"]) for each in mine]).reshape(5, -1).mean(axis=1)

    for game, agent in dict.fromkeys((each["game"], each["agent"]) for each in rows):
        ours, theirs = (returns(game, agent, library) for library in ("optimist", "d3rlpy"))
        yield of_seeds(game, agent, f"{agent} of d3rlpy", ours - theirs)


TABLES = {"differences.csv": lambda: [HEADS, *compared()]}
