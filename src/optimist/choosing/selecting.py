"""`select`: fits the estimators to the log, ranks all kept policies, and says whether to ship the first."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np

from optimist.agents import short_name
from optimist.choosing.analysis import Analysis
from optimist.choosing.estimators import USUAL, available, estimator
from optimist.choosing.evidence import Source, gather, read_sources
from optimist.choosing.importance import doubtful_propensities
from optimist.choosing.ranking import Estimate, Ranked, Selection, estimate
from optimist.choosing.regression import TARGET_RATE
from optimist.data.dataset import Dataset
from optimist.data.transition import whole_number
from optimist.errors import UsageError
from optimist.training.evaluation import evaluate
from optimist.training.seed_logs import whole
from optimist.training.storage.configuration import fingerprint
from optimist.training.storage.selected import SHIP

UPDATES = 10_000
FEWEST = round(10 / TARGET_RATE)  # updates: the targets have followed ten times by then
COVERED = 0.9  # share of held-out states in which a supported policy acts as the behaviour would
EPISODES = 20  # held out: an interval over fewer is too short
PLAYED = 5  # real episodes of the first policy
TELLING = 0.25  # share of effective episodes: with fewer, importance sampling is too sure of itself
SAME = 0.05  # share of the spread of all values; smaller differences are ignored
KEEP = "keep today's policy, or clone it"
WORSE = "the first policy is worse"
LEFT_OUT = "95% over held-out episodes; FQE's error in states that are not in the log is left out"
Scores = Mapping[str, np.ndarray]  # of each estimator, (C,)
Play = Callable[[int, int, int], Sequence[float]]  # (candidate, episodes, round) -> their returns


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
    games = {source: source.run.playable(environment) for source in sources if episodes}  # raises at once
    evidence = gather(sources, data, part, steps)
    analysis = Analysis(evidence, updates)
    scores = {rule: by.scores(analysis)}
    check_scored(rule, scores[rule])  # before the work for the other scores
    scores |= {name: estimator(name).scores(analysis) for name in available() if name != rule}
    scores["effective_episodes"] = analysis.of_weighted(lambda weighted: weighted.effective)
    order = ranked(rule, scores)
    notes = [*doubts(order, scores, [each.name for each in evidence.candidates]), *evidence.notes]
    returns = dict[int, list[float]]()
    if episodes:
        order, returns = halved(order, episodes, _player(analysis, games))
        played = sum(map(len, returns.values()))
        most = f" of at most {episodes}, equally many for each policy of a round," * (played < episodes)
        notes.append(f"{played} real episodes{most} reordered the first {len(returns)} policies")
    notes += _notes_on_weights(analysis, order[0], scores["effective_episodes"][order[0]])
    values = analysis.gains or analysis.values.fqe
    notes += unsettled(updates, analysis.change(order[0]), estimate(values[order[0]]))
    ranking = tuple(_ranked(analysis, scores, number, rule, returns.get(number, ())) for number in order)
    today = estimate(np.concatenate(analysis.observed))
    if cut := analysis.cut_episodes:
        of = sum(len(log.held.starts) for log in evidence.logs)
        notes.append(
            f"{cut:,} of {of:,} held-out episodes were cut off: a fitted value of the log's own policy "
            "stands for what followed"
        )
    judge = _by_play if episodes else _by_log
    better, why = judge(analysis, order[0], ranking[0])
    keep = "keep today's policy" if why.startswith(WORSE) else KEEP
    answer = f"{SHIP} {ranking[0].name}: {why}; today's earns {today}" if better else f"{keep}: {why}"
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


def check_scored(rule: str, score: np.ndarray) -> None:
    """Raise UsageError if the rule's score is NaN for every candidate."""
    if np.isnan(score).all():
        needs = estimator(rule).needs
        because = f": it needs {needs}" if needs else ""
        raise UsageError(
            f'the rule "{rule}" has no score for any policy{because}; choose another, such as {USUAL}'
        )


def ranked(rule: str, scores: Scores) -> list[int]:
    """The numbers of the candidates, the best first; those without a score last. Of equal scores the policy
    with more support is better."""
    return np.lexsort((-scores["support"], -scores[rule])).tolist()


def _ranked(analysis: Analysis, table: Scores, number: int, rule: str, returns: Sequence[float]) -> Ranked:
    candidate = analysis.candidates[number]
    values = {name: float(score[number]) for name, score in table.items()}
    scores = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return Ranked(
        run=candidate.source.path,
        agent=short_name(candidate.source.run.learner.agent),
        step=candidate.step,
        seed=candidate.seed,
        value=scores[rule],
        gain=estimate(analysis.gains[number]) if analysis.gains else None,
        support=values["support"],
        scores=scores,
        returns=tuple(returns),
    )


def doubts(order: Sequence[int], scores: Scores, names: Sequence[str]) -> list[str]:
    """Reasons to doubt the order of the policies, one line each."""
    best, plain, careful, support = order[0], scores["fqe"], scores["supported"], scores["support"]
    lines = []
    if len(plain) == 1:
        lines.append("there is one policy to choose from: a smaller --evaluate-every keeps more")
    spread = float(careful.max() - careful.min())
    favourite = int(np.argmax(plain))
    if spread > 0 and careful[best] - careful[favourite] > SAME * spread and plain.max() > plain[best]:
        lines.append(
            f"the estimators disagree about the order: FQE prefers {names[favourite]}; "
            f"{support[favourite]:.0%} of its actions are within the log's support"
        )
    if len(plain) > 1 and plain.max() - plain.min() <= SAME * max(abs(plain.max()), 1e-9):
        lines.append("FQE cannot tell the policies apart: their values are nearly the same; support decides")
    return lines


def unsettled(updates: int, change: float, value: Estimate) -> list[str]:
    """A note if the networks may have been fitted too briefly: they begin at the log's mean return, which is
    too much for a bad policy. `change` is that of the first policy's value in the second half of them."""
    more = "so the values may still be those with which the networks began: more --updates let them settle"
    if updates < FEWEST:
        return [f"{updates:,} updates are fewer than {FEWEST:,}, {more}"]
    if value.low is not None and value.high is not None and abs(change) > (value.high - value.low) / 2:
        return [
            f"the value of the first policy changed by {change:.3g} in the second half of the updates, {more}"
        ]
    return []


def _by_log(analysis: Analysis, number: int, first: Ranked) -> tuple[bool, str]:
    """Does the log show that the first policy is better than today's? And by how much, or why not."""
    log = analysis.candidates[number].log
    held = len(analysis.evidence.logs[log].held.starts)
    if not analysis.evidence.unseen:
        return False, "the policies learned from all episodes; with --hold-out 0.2 the others judge them"
    if held < EPISODES:
        return False, f"held-out episodes: {held}, which are too few; hold out at least {EPISODES}"
    fqe = estimate(analysis.values.fqe[number] - analysis.observed[log])
    enough = (first.scores["effective_episodes"] or 0) >= TELLING * held
    weighted = analysis.weighted_gain(number) if enough else None
    against = objection(first.gain, fqe, weighted, first.support)
    return not against, against or f"it is better than today's policy by {first.gain} an episode ({LEFT_OUT})"


def objection(gain: Estimate | None, fqe: Estimate, weighted: Estimate | None, support: float) -> str | None:
    """Why the log does not show that a policy is better than today's; None if it does. `gain` is FQE
    corrected by held-out outcomes, `fqe` the same without, `weighted` that of importance sampling."""
    if gain is None or gain.low is None:
        return "nothing in the log corrects FQE's estimate of a policy here; try it in real episodes"
    if support < COVERED:
        return (
            f"the log cannot tell: the first policy acts like the behaviour in {support:.0%} of the held-out "
            f"states, and {COVERED:.0%} are needed"
        )
    if gain.high is not None and gain.high < 0:
        return f"{WORSE}: its gain over today's is {gain}"
    if gain.low <= 0:
        return f"its gain over today's policy, {gain}, may be zero; more held-out episodes tell more"
    for name, other in (("FQE without the held-out outcomes", fqe), ("importance sampling", weighted)):
        if other is not None and other.high is not None and other.high < 0:
            return f"the estimators disagree: {name} finds a gain of {other}"
    return None


def _notes_on_weights(analysis: Analysis, number: int, effective: float) -> list[str]:
    """How much importance sampling says about the first policy, and doubts about the logged propensities."""
    log = analysis.candidates[number].log
    logs, weighted = analysis.evidence.logs, analysis.weighted[log]
    if weighted is None:
        return []
    gain, held = analysis.weighted_gain(number), logs[log].held
    said = f"finds a gain of {gain}" if gain else "cannot tell"
    cloned = ", by a clone's propensities" if held.timeline.probability is None else ""
    line = (
        f"importance sampling {said}{cloned}, if the first policy acts in {1 - weighted.soft:.0%} of the "
        f"steps and the log's own in the others: {effective:.1f} effective episodes of {len(held.starts):,}"
    )
    return [line, *dict.fromkeys(filter(None, (doubtful_propensities(log.learned) for log in logs)))]


def _by_play(analysis: Analysis, number: int, first: Ranked) -> tuple[bool, str]:
    """The same by real episodes. They are not discounted, and neither are those of the log here."""
    logs = [[log.held] if log.learned is log.held else [*log] for log in analysis.evidence.logs]
    logged = [each.episodes for log in logs for each in log]
    known = np.concatenate([each.returns[each.complete] for each in logged])
    counts = f"{len(first.returns)} real episodes and {len(known):,} complete ones of the log"
    if not len(known) or len(first.returns) < PLAYED:
        return False, f"{counts} are too few to compare"
    gain = estimate(np.array(first.returns), known)
    better = gain.low is not None and gain.low > 0
    return better, f"its return is {gain} above today's policy's (95% over {counts}; not discounted)"


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


def _player(analysis: Analysis, games: Mapping[Source, str]) -> Play:
    """Real episodes of a candidate; in one round all candidates play the same ones."""

    def play(number: int, episodes: int, round_: int) -> list[float]:
        candidate = analysis.candidates[number]
        source, row = candidate.source, candidate.row
        rows = evaluate(
            source.run.learner,
            jax.tree.map(lambda leaf: leaf[row : row + 1], source.params(candidate.step)),
            games[source],
            seeds=(0,),
            episodes=episodes,
            epsilon=float(source.training.get("evaluation_epsilon", 0.001)),
            step=round_,
        )
        return [each.score for each in rows]

    return play
