"""Measures every row of a plan, and its peers."""

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from optimist.studies.bench import feeds, learners, peers, play
from optimist.studies.bench.plan import Plan
from optimist.studies.bench.timing import Gauge, Subject, Timing, Work, best, middle, ratio


@dataclass(frozen=True)
class Row:
    """A rate with its limit, and its ratio to the rate of each peer."""

    subject: Subject
    rate: float
    limit: float
    limit_by: str
    times: dict[str, float] = field(default_factory=dict)  # by peer
    forms: dict[str, str] = field(default_factory=dict)  # the version of each peer, or why it is missing


def measured(plan: Plan, beside: Path | None = None) -> Iterator[Row]:
    """Every row of the plan; rows of one network are timed in turns, with their peers if `beside` is a Python
    that has them."""
    for group in _groups(plan):
        with group as works:
            yield from _timed(works, plan.timing, beside)


def _groups(plan: Plan) -> Iterator[AbstractContextManager[list[Work]]]:
    if "learner" in plan.parts:
        yield from (_learning(plan, network) for network in dict.fromkeys(row[1] for row in plan.learners))
    if "data" in plan.parts:
        yield _feeding(plan)
    if "play" in plan.parts:
        yield from (_playing(plan, game) for game in plan.games)


@contextmanager
def _learning(plan: Plan, network: str) -> Iterator[list[Work]]:
    log = learners.random_log(network)
    yield [
        learners.learning(agent, log, network, batch, seeds)
        for agent, asked, batch, seeds in plan.learners
        if asked == network
    ]


@contextmanager
def _feeding(plan: Plan) -> Iterator[list[Work]]:
    with tempfile.TemporaryDirectory() as folder:
        log = feeds.atari_like_log(Path(folder) / "log", plan.logged)
        yield [feeds.feeding(log, home) for home in feeds.HOMES]


@contextmanager
def _playing(plan: Plan, game: str) -> Iterator[list[Work]]:
    network, games = play.network(game), play.alone(game)
    alone = learners.learning(play.AGENT, learners.random_log(network), network, play.BATCH, seeds=1)
    learner = Gauge("the learner alone", alone.do)
    yield [play.evaluating(game, games), play.collecting(game, games, learner, plan.played)]


def _timed(works: list[Work], timing: Timing, beside: Path | None) -> Iterator[Row]:
    with ExitStack() as stack:
        peer = {
            (place, form): stack.enter_context(peers.started(beside, form, work.subject))
            for place, work in enumerate(works)
            for form in peers.FORMS
            if beside and peers.knows(form, work.subject)
        }
        ready = [key for key, each in peer.items() if not each.problem]
        gauges = list(dict.fromkeys(gauge for work in works for gauge, _ in work.needs))
        timed: list[Work | Gauge] = [*works, *gauges]
        rounds = timing.rates([*(each.do for each in timed), *(peer[key] for key in ready)])
        for place, work in enumerate(works):
            limits = {gauge.name: best(rounds, timed.index(gauge)) / amount for gauge, amount in work.needs}
            limited_by = min(limits, key=lambda name: limits[name])
            yield Row(
                work.subject,
                middle(rounds, place),
                limits[limited_by],
                limited_by,
                times={
                    form: ratio(rounds, place, len(timed) + ready.index((at, form)))
                    for at, form in ready
                    if at == place
                },
                forms={form: each.says for (at, form), each in peer.items() if at == place},
            )
