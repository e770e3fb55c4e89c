"""`select`: fits the estimators to the log, ranks all kept policies, and says whether to ship the first."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np

from optimist.choosing import choice
from optimist.choosing.analysis import Analysis
from optimist.choosing.candidates import Candidate, Source, candidates_of, read_sources
from optimist.choosing.choice import KEEP, Scores, estimate
from optimist.choosing.estimators import USUAL, available, estimator
from optimist.choosing.evidence import Evidence, gather
from optimist.choosing.importance import doubtful_propensities
from optimist.choosing.ranking import Ranked, Selection
from optimist.data.dataset import Dataset
from optimist.data.transition import whole_number
from optimist.training.evaluation import evaluate
from optimist.training.seed_logs import whole
from optimist.training.storage.configuration import fingerprint
from optimist.training.storage.selected import SHIP

UPDATES = 10_000
Play = Callable[[int, int, int], Sequence[float]]  # (candidate, episodes, round) -> their returns
LEFT_OUT = "95% over held-out episodes; FQE's error in states that are not in the log is left out"


def select_policy(
    runs: Iterable[str | Path],
    *,
    data: Dataset | str | Path | None = None,
    rule: str = USUAL,
    updates: int = UPDATES,
    episodes: int = 0,
    environment: str = "",
    allow: Iterable[str] = (),
    part: Callable[[Dataset], Dataset] = whole,
    steps: int | None = None,
    anyway: bool = False,
) -> Selection:
    """Rank every kept policy of every seed of these runs by their log alone, or with `episodes` real episodes
    for the best of them. The first is chosen if it is shown to be better than the log's own policy, or
    `anyway`. `part` selects the part of each player's log that is used: by default all of it, also for runs
    that learned from less. `steps` limits the steps of each log: on a CPU it takes long to compute many
    policies at all states."""
    by = estimator(rule)
    updates, episodes = whole_number("updates", updates, least=1), whole_number("episodes", episodes, least=0)
    steps = None if steps is None else whole_number("steps", steps, least=1)
    sources = read_sources(runs, allow)
    candidates = candidates_of(sources)
    play = _player(sources, candidates, environment) if episodes else None  # raises before the long work
    evidence = gather(sources, candidates, data, part, steps)
    analysis = Analysis(evidence, sources, candidates, updates)
    scores = {rule: by.scores(analysis)}
    choice.check_scored(rule, scores[rule])  # before the work for the other scores
    scores |= {name: estimator(name).scores(analysis) for name in available() if name != rule}
    scores["effective_episodes"] = analysis.effective_episodes
    order = choice.ranked(rule, scores)
    names = [f"{sources[each.source].path} step {each.step:,} seed {each.seed}" for each in candidates]
    notes = [*choice.doubts(order, scores, names), *evidence.notes]
    returns = dict[int, list[float]]()
    if play:
        order, returns = halved(order, episodes, play)
        notes.append(_reordered(returns, episodes))
    notes += _notes_on_weights(analysis, order[0])
    ranking = tuple(_ranking(analysis, scores, order, rule, returns))
    today = estimate(np.concatenate(analysis.observed))
    notes += _notes_on_today(analysis)
    better, shown = _by_play(evidence, ranking[0]) if play else _by_log(analysis, order[0], ranking[0])
    keep = "keep today's policy" if shown.startswith(choice.WORSE) else KEEP
    answer = f"{SHIP} {ranking[0].name}: {shown}; today's earns {today}" if better else f"{keep}: {shown}"
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
    fingerprints = {source.path: fingerprint(source.config) for source in sources}
    chosen = ranking[0] if anyway or better else None
    return Selection(rule, today, answer, chosen, ranking, tuple(notes), facts, fingerprints)


def _ranking(
    analysis: Analysis, table: Scores, order: Sequence[int], rule: str, returns: Mapping[int, Sequence[float]]
) -> Iterable[Ranked]:
    for number in order:
        candidate = analysis.candidates[number]
        source = analysis.sources[candidate.source]
        scores = {name: _finite(float(score[number])) for name, score in table.items()}
        yield Ranked(
            run=source.path,
            agent=source.agent,
            step=candidate.step,
            seed=candidate.seed,
            value=scores[rule],
            gain=estimate(analysis.gains[number]) if analysis.gains else None,
            support=float(table["support"][number]),
            scores=scores,
            returns=tuple(returns.get(number, ())),
        )


def _by_log(analysis: Analysis, number: int, first: Ranked) -> tuple[bool, str]:
    """Does the log show that the first policy is better than today's? And by how much, or why not."""
    evidence, log = analysis.evidence, int(analysis.evidence.whose[number])
    held = len(evidence.logs[log].held.starts)
    if not evidence.unseen:
        return False, "the policies learned from all episodes; with --hold-out 0.2 the others judge them"
    if held < choice.EPISODES:
        return False, f"held-out episodes: {held}, which are too few; hold out at least {choice.EPISODES}"
    fqe = estimate(analysis.values.fqe[number] - analysis.observed[log])
    enough = analysis.effective_episodes[number] >= choice.TELLING * held
    weighted = analysis.weighted_gain(number) if enough else None
    against = choice.objection(first.gain, fqe, weighted, first.support)
    return not against, against or f"it is better than today's policy by {first.gain} an episode ({LEFT_OUT})"


def _by_play(evidence: Evidence, first: Ranked) -> tuple[bool, str]:
    """The same by real episodes. They are not discounted, and neither are those of the log here."""
    logs = [[log.held] if log.learned is log.held else [*log] for log in evidence.logs]
    logged = [each.episodes for log in logs for each in log]
    known = np.concatenate([each.returns[each.complete] for each in logged])
    counts = f"{len(first.returns)} real episodes and {len(known):,} complete ones of the log"
    if not len(known) or len(first.returns) < choice.PLAYED:
        return False, f"{counts} are too few to compare"
    gain = estimate(np.array(first.returns), known)
    better = gain.low is not None and gain.low > 0
    return better, f"its return is {gain} above today's policy's (95% over {counts}; not discounted)"


def _notes_on_today(analysis: Analysis) -> list[str]:
    logs = analysis.evidence.logs
    cut = sum(int((~log.held.timeline.terminal[log.held.stops - 1]).sum()) for log in logs)
    if not cut:
        return []
    episodes = sum(len(log.held.starts) for log in logs)
    return [
        f"{cut:,} of {episodes:,} held-out episodes were cut off: a fitted value of the log's own policy "
        "stands for what followed"
    ]


def _notes_on_weights(analysis: Analysis, number: int) -> list[str]:
    """How much importance sampling says about the first policy, and doubts about the logged propensities."""
    evidence, found = analysis.evidence, analysis.weighted[analysis.evidence.whose[number]]
    if found is None:
        return []
    effective, gain = analysis.effective_episodes[number], analysis.weighted_gain(number)
    said = f"finds a gain of {gain}" if gain else "cannot tell"
    log = evidence.logs[evidence.whose[number]]
    cloned = ", by a clone's propensities" if log.held.timeline.probability is None else ""
    line = (
        f"importance sampling {said}{cloned}, if the first policy acts in {1 - found.soft:.0%} of the steps "
        f"and the log's own in the others: {effective:.1f} effective episodes of {len(log.held.starts):,}"
    )
    doubtful = [doubtful_propensities(log.learned) for log in evidence.logs]
    return [line, *dict.fromkeys(note for note in doubtful if note)]


def rounds_of(budget: int, candidates: int) -> list[tuple[int, int]]:
    """(candidates, episodes of each) in every round: half of the candidates stay after each, and every round
    gets an equal share of the budget (Karnin et al. 2013, algorithm 1), the last one also the rest."""
    rounds = max(1, int(math.log2(candidates))) if candidates > 1 else 1
    while rounds > 1 and rounds * 2**rounds > budget:
        rounds -= 1
    field = min(candidates, 2**rounds, budget)
    plan = [(max(1, field >> done), budget // rounds // max(1, field >> done)) for done in range(rounds)]
    left, (last, episodes) = budget - sum(field * each for field, each in plan), plan[-1]
    return [*plan[:-1], (last, episodes + left // last)]


def halved(ranking: Sequence[int], budget: int, play: Play) -> tuple[list[int], dict[int, list[float]]]:
    """The ranking with its head reordered by play, and the returns of every candidate that played."""
    returns = dict[int, list[float]]()
    order = list(ranking)
    for number, (field, episodes) in enumerate(rounds_of(budget, len(order))):
        for candidate in order[:field]:
            returns.setdefault(candidate, []).extend(play(candidate, episodes, number))
        head = sorted(order[:field], key=lambda candidate: -np.mean(returns[candidate]))  # a stable sort
        order[:field] = head
    return order, returns


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
            epsilon=float(source.training.get("evaluation_epsilon", 0.001)),
            step=round_,
        )
        return [row.score for row in rows]

    return play
