"""The recipe `small` on images and on vectors: tables and differences."""

from collections.abc import Iterator

import numpy as np
from results.library.scores import CROSS, HEADS, LAST, of_seeds, points, tables
from results.library.study import Study, tables_of


def vectors() -> Iterator[list]:
    """The recipe `small` on vectors: means over five logs, and differences to the recipe, in points; the
    bounds are Student's."""
    found, own = points("small-scale/vectors/scores.csv"), "0.001/32"
    for game in next(iter(found.values())):
        for measure in (CROSS, LAST, "mean of last 3", "mean of all"):
            scored = {
                agent: np.asarray(tables(measure, {game: runs[game]})[0])[:, 0]
                for agent, runs in found.items()
            }
            for agent, values in scored.items():
                yield of_seeds(game, agent, "", values, measure)
                recipe = f"{agent.rpartition(', ')[0]}, {own}"
                if recipe in scored and agent != recipe:
                    yield of_seeds(game, agent, recipe, values - scored[recipe], measure)


TABLES = {
    "vectors/differences.csv": lambda: [HEADS, *vectors()],
    **tables_of("small-scale", evaluations=20),
}
FIGURES = {
    "intervals.png": lambda: Study("small-scale").intervals(),
    "iqm.png": lambda: Study("small-scale").iqm(),
}
