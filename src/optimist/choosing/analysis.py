"""What the log shows about all candidates: their actions, their support, their values and their gains over
the log's own policy. What several estimators need is computed once."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from optimist.choosing.candidates import Candidate, Source
from optimist.choosing.choice import Estimate
from optimist.choosing.decisions import answers
from optimist.choosing.evidence import Evidence, Steps
from optimist.choosing.fitted_q import Values, policy_values
from optimist.choosing.importance import Weighted, softened
from optimist.choosing.support import Supported, support
from optimist.choosing.today import corrections, observed_returns


class Analysis:
    """The candidates of one selection, judged by the evidence."""

    def __init__(
        self,
        evidence: Evidence,
        sources: Sequence[Source],
        candidates: Sequence[Candidate],
        updates: int,
    ):
        self.evidence, self.sources, self.candidates = evidence, sources, candidates
        self._updates, self._whose = updates, evidence.whose.tolist()
        self._learned_steps = Steps([each.learned for each in evidence.logs], evidence.rewards)
        self._held_steps = Steps([each.held for each in evidence.logs], evidence.rewards)
        self._learned = answers(evidence, sources, candidates, self._learned_steps)
        self.held = answers(evidence, sources, candidates, self._held_steps)

    @cached_property
    def supported(self) -> Supported:
        steps = (self._learned_steps, self._held_steps)
        return support(self.evidence, self._learned, self.held, *steps, self._updates)

    @cached_property
    def values(self) -> Values:
        """The values at the start of every held-out episode."""
        return policy_values(
            self.evidence,
            self._learned,
            self.held,
            self.supported.learned,
            self.supported.held,
            self._held_steps,
            self._updates,
        )

    @cached_property
    def observed(self) -> list[np.ndarray]:
        """What the log's own policy earned in each held-out episode of each log."""
        return observed_returns(self.evidence, self._held_steps, self._updates)

    @cached_property
    def gains(self) -> list[np.ndarray]:
        """What each candidate would have earned above that, in each held-out episode of its log; empty for
        action vectors, for which nothing corrects FQE."""
        if not self.evidence.spec.discrete:
            return []
        each = zip(self._whose, self.held, self.values.fqe, self.values.surprises, strict=True)
        return [
            value
            + corrections(self.evidence, log, said.action, self.supported.propensities[log], surprises)
            - self.observed[log]
            for log, said, value, surprises in each
        ]

    @cached_property
    def weighted(self) -> list[Weighted | None]:
        """Importance sampling on each log; None for action vectors."""
        return [
            None
            if known is None
            else softened(log.held, self._actions_on(number), known, self.evidence.rewards)
            for number, (log, known) in enumerate(
                zip(self.evidence.logs, self.supported.propensities, strict=True)
            )
        ]

    def _actions_on(self, log: int) -> list[np.ndarray]:
        return [said.action for said, mine in zip(self.held, self._whose, strict=True) if mine == log]

    def weighted_gain(self, number: int) -> Estimate | None:
        """The gain of a candidate by importance sampling; None if too few episodes tell it."""
        log = self._whose[number]
        found = self.weighted[log]
        if found is None:
            return None
        gains = found.gains[:, self._whose[:number].count(log)]
        return (
            None if np.isnan(gains).any() else Estimate(*gains[:1], *np.quantile(gains[1:], [0.025, 0.975]))
        )

    def of_weighted(self, read: Callable[[Weighted], np.ndarray]) -> np.ndarray:
        """A column of the weighted estimates, (C,)."""
        column = np.full(len(self.candidates), np.nan)
        for log, found in enumerate(self.weighted):
            if found is not None:
                column[self.evidence.whose == log] = read(found)
        return column

    @cached_property
    def effective_episodes(self) -> np.ndarray:
        """The number of held-out episodes that importance sampling effectively has, (C,)."""
        return self.of_weighted(lambda found: found.effective)


def means(columns: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([float(np.mean(column)) for column in columns])
