"""REM's epsilon, and its heads: tables and differences."""

from collections.abc import Iterator

from results.library.scores import HEADS, TWICE, differences, over_training, pooled, scores
from results.library.study import Study, tables_of

EPSILON = [
    "DQN (Adam)",
    "DQN (Adam), epsilon x 10",
    "REM, head epsilon / 200",
    "Averaged, head epsilon / 200",
    "REM",
]
SLOW = ("DQN (Adam), rate / 5", "REM, rate / 5")


def compared() -> Iterator[list]:
    once = {agent: [runs] for agent, runs in scores("epsilon-and-heads").items()}
    yield from over_training(once)
    second = {f"{agent}, second": [scores("asymptotic")[agent]] for agent in TWICE}
    others = [agent for agent in once if agent not in TWICE]
    pairs = [(one, two) for two in (*pooled(), *second) for one in others]
    yield from differences("5X", {**once, **pooled(), **second}, pairs)


TABLES = {
    "differences.csv": lambda: [HEADS, *compared()],
    **tables_of("epsilon-and-heads", "1x-", evaluations=5),
    **tables_of("epsilon-and-heads", "5x-", evaluations=25),
}
FIGURES = {
    "epsilon.png": lambda: Study("epsilon-and-heads", agents=EPSILON).iqm(),
    "iqm.png": lambda: Study("epsilon-and-heads").iqm(),
    "intervals.png": lambda: Study("epsilon-and-heads").intervals(),
    "curves.png": lambda: Study("epsilon-and-heads", without=SLOW).curves(),
}
