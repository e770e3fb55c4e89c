"""The regret of each rule that chooses a policy, computed from evaluations of all kept policies.

Regret is 0 for the best kept policy and 1 for random play. The rules of `optimist select` know the log alone.
They are compared with the last policy, the same step for all, and the best of a few policies that are played.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimist.choosing.estimators import available
from optimist.studies.results.runs import Evaluated
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


def losses(runs: Iterable[Evaluated], random: Mapping[str, float]) -> list[Loss]:
    """Every rule among the policies of every run, and of all agents together. Where no policy is better than
    random play there is none."""
    alone = [each for run in runs for each in _of_run(run, random.get(run.job.environment, 0.0))]
    useful = [each for each in [*alone, *_together(alone)] if each.truth.max() > each.random]
    return [
        Loss(each.game, each.part, each.agent, each.seed, *values)
        for each in useful
        for values in _by_rule(each, alone)
    ]


def _of_run(run: Evaluated, random: float) -> Iterator[Policies]:
    candidates = run.selection["candidates"] if run.selection else []
    for seed, curve in run.curves.items():
        mine = [each for each in candidates if each["seed"] == seed and each["step"] in curve]
        mine.sort(key=lambda each: each["step"])
        if mine:
            yield Policies(
                game=run.job.environment,
                part=run.job.part,
                agent=run.job.label,
                seed=seed,
                steps=np.array([each["step"] for each in mine]),
                truth=np.array([curve[each["step"]] for each in mine]),
                scores={
                    rule: np.array([each["scores"].get(rule) for each in mine], float) for rule in available()
                },
                random=random,
            )


def _together(runs: Sequence[Policies]) -> Iterator[Policies]:
    """The policies of all agents of a seed in a game."""
    groups: dict[tuple[str, str, int], list[Policies]] = {}
    for each in runs:
        groups.setdefault((each.game, each.part, each.seed), []).append(each)
    for (game, part, seed), mine in groups.items():
        if len(mine) > 1:
            steps = np.concatenate([each.steps for each in mine])
            truth = np.concatenate([each.truth for each in mine])
            scores = {rule: np.concatenate([each.scores[rule] for each in mine]) for rule in available()}
            yield Policies(game, part, ALL, seed, steps, truth, scores, mine[0].random)


def _by_rule(policies: Policies, runs: Sequence[Policies]) -> Iterator[tuple]:
    """Rule, regret and rank correlation."""
    for rule in available():
        scores = policies.scores[rule]
        known = ~np.isnan(scores)
        if known.any():
            first = np.lexsort((-policies.scores["support"], -scores))[:1]
            yield rule, policies.regret(first), rank_correlation(scores[known], policies.truth[known])
    if policies.agent != ALL:
        yield LAST, policies.regret([int(policies.steps.argmax())])
        yield SAME, policies.regret([_same_step(policies, runs)])
        for count in COUNTS:
            spaced = np.linspace(0, len(policies.steps) - 1, count + 1).round()[1:].astype(int)
            yield PLAYED.format(count), policies.regret(np.unique(spaced))


def _same_step(policies: Policies, runs: Sequence[Policies]) -> int:
    """The place of the step with the least regret in the other games; with one game, in the other seeds."""
    others = [each for each in runs if each.game != policies.game]
    others = others or [each for each in runs if each.seed != policies.seed] or list(runs)
    lost = np.zeros(len(policies.steps))
    for other in (each for each in others if each.truth.max() > each.random):
        places = np.linspace(0, len(other.steps) - 1, len(policies.steps)).round().astype(int)
        lost += [other.regret([place]) for place in places]
    return int(lost.argmin())


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    """Spearman's correlation; equal values get their mean rank. None if either array is constant."""
    ranks = [_ranks(each) for each in (one, other)]
    if any(np.ptp(each) == 0 for each in ranks):
        return None
    return float(np.corrcoef(np.stack(ranks))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.array([(values < each).sum() + (values == each).sum() / 2 for each in values])


def sheet(losses: Sequence[Loss]) -> Sheet:
    """The rules over all games."""
    rows = []
    for rule in dict.fromkeys(loss.rule for loss in losses):
        mine = [loss for loss in losses if loss.rule == rule]
        within = [loss for loss in mine if loss.agent != ALL]
        across = [loss for loss in mine if loss.agent == ALL]
        rows.append([rule, *_cells(within), *_cells(across)])
    kinds = ("regret", "rank correlation")
    heads = ["rule", *(f"{kind}, {where}" for where in ("within a run", "across agents") for kind in kinds)]
    notes = [
        "regret: 0% is the score of the best kept policy, 100% that of random play; the best is chosen by "
        "noisy evaluations, so regret is a little too high for every rule",
        "in brackets 95% bootstrap intervals over games and seeds",
        f"{SAME}: the step with the least regret in the other games; rules that play know the true scores",
    ]
    return Sheet("regret of each rule", heads, rows, notes)


def _cells(losses: Sequence[Loss]) -> list[Cell]:
    if not losses:
        return [Cell(""), Cell("")]
    known = [loss.rank_correlation for loss in losses if loss.rank_correlation is not None]
    sure = stratified_bootstrap(mean, [[loss.regret] for loss in losses], repetitions=DRAWS)
    shown = f"{sure.estimate:.0%} [{sure.low:.0%}, {sure.high:.0%}]"
    correlation = Cell(f"{np.mean(known):.2f}", float(np.mean(known))) if known else Cell("")
    return [Cell(shown, sure.estimate), correlation]
