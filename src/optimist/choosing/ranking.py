"""The ranking of all candidates, as text and as selection.json; its numbers have intervals."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optimist.data.disk.files import make_folder
from optimist.training.storage.selected import write_selection

SHOWN = 5  # lines of a ranking
DRAWS = 2000  # of the bootstrap


class Estimate(NamedTuple):
    """A mean with its 95% interval, if there is one."""

    mean: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:.4g}, {self.high:.4g}]"
        return f"{self.mean:.4g}{interval}"


def estimate(values: np.ndarray, others: np.ndarray | None = None) -> Estimate:
    """The mean over episodes, (episodes,), with a bootstrap interval; above the mean of `others` if they are
    given. One episode has no interval: drawn again and again it shows no spread."""
    random, both = np.random.default_rng(0), [values] if others is None else [values, others]
    first, *less = [each.mean() for each in both]
    mean = float(first - sum(less))
    if min(map(len, both)) < 2:
        return Estimate(mean)
    drawn, *less = [each[random.integers(len(each), size=(DRAWS, len(each)))].mean(axis=1) for each in both]
    return Estimate(mean, *np.quantile(drawn - sum(less), [0.025, 0.975]).tolist())


@dataclass(frozen=True)
class Ranked:
    """A candidate in the ranking. `value` is by the rule, None if that has no score for it; `gain` is over
    the log's own policy, None if the log cannot correct its estimate."""

    run: Path
    agent: str
    step: int
    seed: int
    value: float | None
    gain: Estimate | None
    support: float
    scores: dict[str, float | None]
    returns: tuple[float, ...] = ()  # of real episodes, if some were played

    @property
    def name(self) -> str:
        return f"{self.run} step {self.step:,} seed {self.seed}"

    def record(self) -> dict[str, Any]:
        gain = self.gain and self.gain._asdict()
        return {**vars(self), "run": str(self.run), "gain": gain, "returns": list(self.returns)}


@dataclass(frozen=True)
class Selection:
    """The ranking of all kept policies of some runs, the best first. `answer` says whether the first is
    better than today's policy, that of the log; `chosen` is the one to ship, None if the log cannot tell."""

    rule: str
    today: Estimate  # what the log's own policy earns in an episode
    answer: str
    chosen: Ranked | None
    ranking: tuple[Ranked, ...]
    notes: tuple[str, ...]
    facts: dict[str, Any]
    fingerprints: dict[Path, str] = field(repr=False)

    @cached_property
    def runs(self) -> dict[Path, Ranked]:
        """The best policy of each run."""
        return {each.run: each for each in reversed(self.ranking)}

    def __repr__(self) -> str:
        policies = "1 policy" if len(self.ranking) == 1 else f"{len(self.ranking)} policies"
        runs = "1 run" if len(self.runs) == 1 else f"{len(self.runs)} runs"
        lines = [
            self.answer,
            f"Selection of {policies} of {runs} by {self.rule}; today's policy {self.today}",
        ]
        for place, each in enumerate(self.ranking[:SHOWN], 1):
            value = "no score" if each.value is None else f"{each.value:.4g}"
            gain = "" if each.gain is None else f", gain {each.gain}"
            lines.append(f"  {place}. {each.name:40} {value}{gain}, support {each.support:.0%}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def record(self, run: Path | None = None) -> dict[str, Any]:
        """The contents of selection.json, of all runs or of one run."""
        mine = [each for each in self.ranking if run is None or each.run == run]
        chosen, among = None, sorted(self.fingerprints.values())
        if self.chosen:
            chosen = {name: self.chosen.record()[name] for name in ("run", "step", "seed")}
        content = {**self.facts, "rule": self.rule, "notes": list(self.notes), "answer": self.answer}
        content |= {"today": self.today._asdict(), "chosen": chosen, "among": among}
        if run:
            first = {each.seed: each.step for each in reversed(mine)}
            content |= {"fingerprint": self.fingerprints[run], "here": self.chosen in mine}
            content["seeds"] = {str(seed): first[seed] for seed in sorted(first)}
        return {**content, "candidates": [each.record() for each in mine]}

    def write(self, out: Path | None = None) -> None:
        """Write selection.json into the folder of every run, and one about all runs into `out`."""
        for run in self.runs:
            write_selection(run, self.record(run))
        if out:
            make_folder(out)
            write_selection(out, self.record())
