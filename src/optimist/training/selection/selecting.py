"""`select`: fits the estimators to the log, and ranks all kept policies."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.numbers import whole_number
from optimist.training.evaluation import evaluate
from optimist.training.seed_logs import whole
from optimist.training.selection import choice
from optimist.training.selection.candidates import Candidate, Source, candidates_of, read_sources
from optimist.training.selection.estimators import Estimators
from optimist.training.selection.evidence import gather
from optimist.training.selection.halving import Play, halved
from optimist.training.selection.ranking import Ranked, Selection
from optimist.training.storage.configuration import fingerprint

UPDATES = 10_000
VALUES = ("cautious", "supported", "fqe")  # rules whose scores have intervals


def select_policy(
    runs: Iterable[str | Path],
    *,
    data: Dataset | str | Path | None = None,
    rule: str = choice.USUAL,
    updates: int = UPDATES,
    every_rule: bool = False,
    episodes: int = 0,
    environment: str = "",
    allow: Iterable[str] = (),
    part: Callable[[Dataset], Dataset] = whole,
    steps: int | None = None,
) -> Selection:
    """Rank every kept policy of every seed of these runs by their log alone, or with `episodes` real episodes
    for the best of them. `every_rule` also computes the scores of rules that take long. `part` selects the
    part of each player's log that is used: by default all of it, also for runs that learned from less.
    `steps` limits the steps of each log: on a CPU it takes long to compute many policies at all states."""
    choice.check_rule(rule)
    updates, episodes = whole_number("updates", updates, least=1), whole_number("episodes", episodes, least=0)
    steps = None if steps is None else whole_number("steps", steps, least=1)
    sources = read_sources(runs, allow)
    candidates = candidates_of(sources)
    play = _player(sources, candidates, environment) if episodes else None  # raises before the long work
    evidence = gather(sources, candidates, data, part, steps)
    estimators = Estimators(evidence, sources, candidates, updates)
    choice.check_scored(rule, estimators.quick_scores)  # before the long work too
    scores = estimators.scores(slow=every_rule or rule == "sbv")
    names = [f"{sources[each.source].path} step {each.step:,} seed {each.seed}" for each in candidates]
    order = choice.ranked(rule, scores)
    notes = [*choice.doubts(order, scores, names), *evidence.notes]
    if rule in VALUES and any(len(log.held.starts) == 1 for log in evidence.logs):
        notes.append("the values come from one episode, which shows no spread: they have no interval")
    returns = dict[int, list[float]]()
    if play:
        order, returns = halved(order, episodes, play)
        notes.append(_reordered(returns, episodes))
    facts = {
        "data": sources[0].run.data,
        "recording": sources[0].recording,
        "gamma": evidence.rewards.gamma,
        "updates": updates,
        "steps": steps,
        "used": sum(len(log.learned) + len(log.held) for log in evidence.logs),
        "episodes": sum(map(len, returns.values())),
        "runs": len(sources),
    }
    ranking = _ranking(estimators, order, rule, scores, returns)
    fingerprints = {source.path: fingerprint(source.config) for source in sources}
    return Selection(rule, tuple(ranking), tuple(notes), facts, fingerprints)


def _ranking(
    estimators: Estimators,
    order: Sequence[int],
    rule: str,
    scores: choice.Scores,
    returns: Mapping[int, Sequence[float]],
) -> list[Ranked]:
    found = []
    for number in order:
        candidate = estimators.candidates[number]
        source = estimators.sources[candidate.source]
        low, high = (
            choice.interval(getattr(estimators.values, rule)[number]) if rule in VALUES else (None, None)
        )
        found.append(
            Ranked(
                run=source.path,
                agent=source.agent,
                step=candidate.step,
                seed=candidate.seed,
                value=_finite(float(scores[choice.RULES[rule].score][number])),
                low=low,
                high=high,
                support=float(scores["support"][number]),
                scores={name: _finite(float(score[number])) for name, score in scores.items()},
                returns=tuple(returns.get(number, ())),
            )
        )
    return found


def _reordered(returns: Mapping[int, Sequence[float]], episodes: int) -> str:
    played = sum(map(len, returns.values()))
    of = "" if played == episodes else f" of at most {episodes}, equally many for each policy of a round,"
    return f"{played} real episodes{of} reordered the first {len(returns)} policies"


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _player(sources: Sequence[Source], candidates: Sequence[Candidate], environment: str) -> Play:
    """Real episodes of a candidate; in one round all candidates play the same ones."""
    games = [source.run.playable(environment) for source in sources]

    def play(number: int, episodes: int, round_: int) -> list[float]:
        candidate = candidates[number]
        source = sources[candidate.source]
        row = source.run.seeds.index(candidate.seed)
        params = jax.tree.map(lambda leaf: leaf[row : row + 1], source.params(candidate.step))
        rows = evaluate(
            source.run.learner,
            params,
            games[candidate.source],
            seeds=(0,),
            episodes=episodes,
            epsilon=float(source.training.get("epsilon", 0.001)),
            step=round_,
        )
        return [row.score for row in rows]

    return play
