"""Five agents online: tables and differences."""

from collections.abc import Iterator
from itertools import permutations

from results.library.scores import CROSS, DRAWS, HEADS, LAST, alone, scores, tables, without
from results.library.study import Study, tables_of

from optimist.studies.scores.statistics import SHARE, probability_of_improvement, stratified_bootstrap


def compared() -> Iterator[list]:
    """The probability that a run of one agent beats a run of the other, and the IQMs without Freeway."""
    found = scores("online")
    for measure in ("best", CROSS, LAST, "mean of last 3"):
        for one, other in permutations(found, 2):
            both = (tables(measure, found[agent])[0] for agent in (one, other))
            sure = stratified_bootstrap(probability_of_improvement, *both, repetitions=DRAWS, limits=SHARE)
            numbers = (f"{number:.4f}" for number in (sure.estimate, sure.low, sure.high))
            yield ["P", measure, one, other, *numbers]
    sides = without("freeway", {agent: [runs] for agent, runs in found.items()})
    yield from alone("without Freeway", sides, ["mean of last 3"])


TABLES = {
    "differences.csv": lambda: [HEADS, *compared()],
    **tables_of("online", evaluations=20, paired=False),  # each agent has logs of its own
}
FIGURES = {
    "medians.png": lambda: Study("online").medians("steps played"),
    "curves.png": lambda: Study("online").curves("steps played"),
}
