"""The regret of each rule that chooses a policy, computed from evaluations of all kept policies.

Regret is 0 for the best kept policy and 1 for random play. The rules of `optimist select` know the log alone.
They are compared with the last policy, the same step for all, and the best of a few policies that are played.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from optimist.choosing.estimators import available
from optimist.studies.results.runs import Evaluated
from optimist.studies.sheet import Cell, Sheet, as_csv

LAST, SAME, PLAYED = "last", "the same step for all", "the best of {} that are played"
COUNTS = (3, 5)  # policies that are played
ALL = "all agents"
DRAWS = 2000


@dataclass(frozen=True)
class Field:
    """The policies among which one is chosen: of one seed in one game, by one agent or by all."""

    game: str
    part: str
    agent: str
    seed: int
    steps: np.ndarray  # (n,)
    truth: np.ndarray  # the mean return of each policy, (n,)
    scores: Mapping[str, np.ndarray]
    random: float  # the return of random play

    def regret(self, picks: Any) -> float:
        """The regret of the best of the policies at these places."""
        best = self.truth.max()
        return float((best - self.truth[picks].max()) / (best - self.random))


class Loss(NamedTuple):
    """One rule in one field."""

    field: Field
    rule: str
    first: float  # regret of the first choice
    three: float | None  # of the best of the first three
    correlation: float  # of ranks; NaN where nothing is ranked


def losses(runs: Iterable[Evaluated], random: Mapping[str, float]) -> list[Loss]:
    """Every rule in every field. Fields in which no policy is better than random play are left out."""
    alone = [field for run in runs for field in _fields(run, random.get(run.job.environment, 0.0))]
    useful = [field for field in [*alone, *_together(alone)] if field.truth.max() > field.random]
    return [loss for field in useful for loss in _losses(field, alone)]


def _fields(run: Evaluated, random: float) -> Iterable[Field]:
    record = run.selection
    if record is None:
        return
    for seed, curve in run.curves.items():
        mine = [each for each in record["candidates"] if each["seed"] == seed and each["step"] in curve]
        mine.sort(key=lambda each: each["step"])
        if mine:
            yield Field(
                game=run.job.environment,
                part=run.job.part,
                agent=run.job.label,
                seed=seed,
                steps=np.array([each["step"] for each in mine]),
                truth=np.array([curve[each["step"]] for each in mine]),
                scores={
                    name: np.array([_number(each["scores"].get(name)) for each in mine])
                    for name in available()
                },
                random=random,
            )


def _number(score: float | None) -> float:
    return float("nan") if score is None else float(score)


def _together(fields: Sequence[Field]) -> list[Field]:
    """The policies of all agents of a seed in a game as one field."""
    groups: dict[tuple[str, str, int], list[Field]] = {}
    for field in fields:
        groups.setdefault((field.game, field.part, field.seed), []).append(field)
    return [
        Field(
            game=game,
            part=part,
            agent=ALL,
            seed=seed,
            steps=np.concatenate([each.steps for each in mine]),
            truth=np.concatenate([each.truth for each in mine]),
            scores={n: np.concatenate([each.scores[n] for each in mine]) for n in mine[0].scores},
            random=mine[0].random,
        )
        for (game, part, seed), mine in groups.items()
        if len(mine) > 1
    ]


def _losses(field: Field, others: Sequence[Field]) -> Iterable[Loss]:
    for rule in available():
        wanted = field.scores[rule]
        known = ~np.isnan(wanted)
        if known.any():
            order = np.lexsort((-field.scores["support"], -wanted))
            correlation = rank_correlation(wanted[known], field.truth[known])
            yield Loss(field, rule, field.regret(order[:1]), field.regret(order[:3]), correlation)
    if field.agent != ALL:
        last = int(field.steps.argmax())
        yield Loss(field, LAST, field.regret([last]), None, float("nan"))
        yield Loss(field, SAME, field.regret([_same_step(field, others)]), None, float("nan"))
        for count in COUNTS:
            spaced = np.unique(np.linspace(0, len(field.steps) - 1, count + 1).round()[1:].astype(int))
            yield Loss(field, PLAYED.format(count), field.regret(spaced), None, float("nan"))


def _same_step(field: Field, others: Sequence[Field]) -> int:
    """The place of the step with the least regret in the other games; with one game, in the other seeds."""
    rest = [other for other in others if other.game != field.game]
    rest = rest or [other for other in others if other.seed != field.seed] or list(others)
    rest = [other for other in rest if other.truth.max() > other.random]
    lost = np.zeros(len(field.steps))
    for other in rest:
        places = np.linspace(0, len(other.steps) - 1, len(field.steps)).round().astype(int)
        lost += [other.regret([place]) for place in places]
    return int(lost.argmin())


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's correlation; equal values get their mean rank. NaN if either array is constant."""
    ranks = [_ranks(each) for each in (one, other)]
    if any(np.ptp(each) == 0 for each in ranks):
        return float("nan")
    return float(np.corrcoef(np.stack(ranks))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.array([(values < each).sum() + (values == each).sum() / 2 for each in values])


def sheets(found: Sequence[Loss]) -> dict[str, Sheet]:
    """The rules over all games, and by agent and game."""
    rules = list(dict.fromkeys(loss.rule for loss in found))
    return {"rules": _rules_sheet(found, rules), "rules-by-agent": _by_agent_sheet(found, rules)}


def _rules_sheet(found: Sequence[Loss], rules: Sequence[str]) -> Sheet:
    rows = []
    for rule in rules:
        mine = [loss for loss in found if loss.rule == rule]
        within = [loss for loss in mine if loss.field.agent != ALL]
        across = [loss for loss in mine if loss.field.agent == ALL]
        rows.append([rule, *_cells(within), *_cells(across)])
    kinds = ("regret at 1", "regret at 3", "rank correlation")
    heads = ["rule", *(f"{kind}, {where}" for where in ("within a run", "across agents") for kind in kinds)]
    notes = [
        "regret: 0% is the score of the best kept policy, 100% that of random play; the best is chosen by "
        "noisy evaluations, so regret is a little too high for every rule",
        "in brackets 95% bootstrap intervals over games and seeds",
        f"{SAME}: the step with the least regret in the other games; rules that play know the true scores",
    ]
    return Sheet("regret of each rule", heads, rows, notes)


def _cells(mine: Sequence[Loss]) -> list[Any]:
    first = [loss.first for loss in mine]
    three = [loss.three for loss in mine if loss.three is not None]
    known = [loss.correlation for loss in mine if np.isfinite(loss.correlation)]
    correlation = Cell(f"{np.mean(known):.2f}", float(np.mean(known))) if known else Cell("")
    return [_share(first), _share(three), correlation]


def _share(values: Sequence[float]) -> Cell:
    if not values:
        return Cell("")
    drawn = np.random.default_rng(0).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(np.array(values)[drawn].mean(axis=1), [0.025, 0.975])
    mean = float(np.mean(values))
    return Cell(f"{mean:.0%} [{low:.0%}, {high:.0%}]", mean)


def _by_agent_sheet(found: Sequence[Loss], rules: Sequence[str]) -> Sheet:
    """The regret of the first choice within a run, by rule and agent."""
    alone = [loss for loss in found if loss.field.agent != ALL]
    places = list(dict.fromkeys((loss.field.agent, loss.field.game) for loss in alone))
    agents = list(dict.fromkeys(agent for agent, _ in places))
    rows = []
    for agent in agents:
        for rule in rules:
            mine = [loss for loss in alone if (loss.field.agent, loss.rule) == (agent, rule)]
            games = dict.fromkeys(game for _, game in places)
            by_game = [[loss.first for loss in mine if loss.field.game == game] for game in games]
            means = [Cell(f"{np.mean(each):.0%}", float(np.mean(each))) if each else "" for each in by_game]
            rows.append([agent, rule, _share([loss.first for loss in mine]), *means])
    heads = ["agent", "rule", "regret at 1", *dict.fromkeys(game for _, game in places)]
    return Sheet("regret of each rule, by agent and game", heads, rows)


def csv_text(found: Sequence[Loss]) -> str:
    rows = [
        [each.game, each.part, each.agent, each.seed, rule, first, three, _known(correlation)]
        for each, rule, first, three, correlation in found
    ]
    heads = ["game", "data", "agent", "seed", "rule", "regret_at_1", "regret_at_3", "rank_correlation"]
    return as_csv(Sheet("", heads, rows))


def _known(correlation: float) -> float | None:
    return correlation if np.isfinite(correlation) else None
