"""The regret of each rule that chooses a policy, computed from evaluations of all kept policies.

Regret is 0 for the best kept policy and 1 for random play. The rules of `optimist select` know the log alone.
They are compared with the last policy, the same step for all, and the best of a few policies that are played.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimist.choosing.estimators import available
from optimist.studies.results.findings import StudyResults, random_scores
from optimist.studies.scores.statistics import mean, stratified_bootstrap
from optimist.studies.sheet import Cell, Sheet

LAST, SAME, PLAYED = "last", "the same step for all", "the best of {} that are played"
COUNTS = (3, 5)  # policies that are played
ALL = "all agents"
DRAWS = 2000


@dataclass(frozen=True)
class Policies:
    """The policies among which one is chosen: of one seed in one game, by one agent or by all."""

    game: str
    part: str
    agent: str
    seed: int
    steps: np.ndarray  # (n,)
    truth: np.ndarray  # the mean return of each policy, (n,)
    scores: Mapping[str, np.ndarray]
    random: float  # the return of random play

    def regret(self, places: Any) -> float:
        """The regret of the best of the policies at these places."""
        best = self.truth.max()
        return float((best - self.truth[places].max()) / (best - self.random))


@dataclass(frozen=True)
class Loss:
    """What one rule loses by its first choice, and the rank correlation of its scores, if it has any."""

    game: str
    part: str
    agent: str
    seed: int
    rule: str
    regret: float
    rank_correlation: float | None = None


def losses(study: StudyResults) -> list[Loss]:
    """Every rule among the policies of every run, and of all agents together. Where no policy is better than
    random play there is none."""
    random = random_scores(study.done, study.out)
    alone: list[Policies] = []
    for run in study.runs:
        game, part, agent = run.job.environment, run.job.part, run.job.label
        candidates = run.selection["candidates"] if run.selection else []
        for seed, curve in run.curves.items():
            mine = [each for each in candidates if each["seed"] == seed and each["step"] in curve]
            mine.sort(key=lambda each: each["step"])
            if mine:
                steps = np.array([each["step"] for each in mine])
                truth = np.array([curve[each["step"]] for each in mine])
                scores = {
                    rule: np.array([each["scores"].get(rule) for each in mine], float) for rule in available()
                }
                alone.append(Policies(game, part, agent, seed, steps, truth, scores, random.get(game, 0.0)))
    groups: dict[tuple[str, str, int], list[Policies]] = {}
    for each in alone:
        groups.setdefault((each.game, each.part, each.seed), []).append(each)
    together = []
    for (game, part, seed), some in groups.items():
        if len(some) > 1:
            steps, truth = (np.concatenate([getattr(each, of) for each in some]) for of in ("steps", "truth"))
            scores = {rule: np.concatenate([each.scores[rule] for each in some]) for rule in available()}
            together.append(Policies(game, part, ALL, seed, steps, truth, scores, some[0].random))
    return [
        Loss(each.game, each.part, each.agent, each.seed, *values)
        for each in [*alone, *together]
        if each.truth.max() > each.random
        for values in _by_rule(each, alone)
    ]


def _by_rule(policies: Policies, runs: Sequence[Policies]) -> Iterator[tuple]:
    """Rule, regret and rank correlation."""
    for rule in available():
        scores = policies.scores[rule]
        known = ~np.isnan(scores)
        if known.any():
            first = np.lexsort((-policies.scores["support"], -scores))[:1]
            yield rule, policies.regret(first), rank_correlation(scores[known], policies.truth[known])
    if policies.agent == ALL:
        return
    yield LAST, policies.regret([int(policies.steps.argmax())])
    # The step with the least regret in the other games; with one game, in the other seeds.
    others = [each for each in runs if each.game != policies.game]
    others = others or [each for each in runs if each.seed != policies.seed] or list(runs)
    lost = np.zeros(len(policies.steps))
    for other in (each for each in others if each.truth.max() > each.random):
        places = np.linspace(0, len(other.steps) - 1, len(policies.steps)).round().astype(int)
        lost += [other.regret([place]) for place in places]
    yield SAME, policies.regret([int(lost.argmin())])
    for count in COUNTS:
        spaced = np.linspace(0, len(policies.steps) - 1, count + 1).round()[1:].astype(int)
        yield PLAYED.format(count), policies.regret(np.unique(spaced))


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    """Spearman's correlation; equal values get their mean rank. None if either array is constant."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    ranks = [
        [(values < each).sum() + (values == each).sum() / 2 for each in values] for values in (one, other)
    ]
    return float(np.corrcoef(ranks)[0, 1])


def sheet(losses: Sequence[Loss]) -> Sheet:
    """The rules over all games, within a run and across agents."""
    rows: list[list[Any]] = []
    for rule in dict.fromkeys(loss.rule for loss in losses):
        rows.append([rule])
        for across in (False, True):
            mine = [loss for loss in losses if loss.rule == rule and (loss.agent == ALL) == across]
            known = [loss.rank_correlation for loss in mine if loss.rank_correlation is not None]
            if mine:
                sure = stratified_bootstrap(mean, [[loss.regret] for loss in mine], repetitions=DRAWS)
                shown = f"{sure.estimate:.0%} [{sure.low:.0%}, {sure.high:.0%}]"
            rows[-1] += [Cell(shown, sure.estimate) if mine else Cell("")]
            rows[-1] += [Cell(f"{np.mean(known):.2f}", float(np.mean(known))) if known else Cell("")]
    kinds = ("regret", "rank correlation")
    heads = ["rule", *(f"{kind}, {where}" for where in ("within a run", "across agents") for kind in kinds)]
    notes = [
        "regret: 0% is the score of the best kept policy, 100% that of random play; the best is chosen by "
        "noisy evaluations, so regret is a little too high for every rule",
        "in brackets 95% bootstrap intervals over games and seeds",
        f"{SAME}: the step with the least regret in the other games; rules that play know the true scores",
    ]
    return Sheet("regret of each rule", heads, rows, notes)
