"""All scores of all candidates, and their gains over the log's own policy. What several of them need is
computed once."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from optimist.training.selection.agreement import agreement
from optimist.training.selection.candidates import Candidate, Source
from optimist.training.selection.choice import Estimate
from optimist.training.selection.decisions import answers
from optimist.training.selection.evidence import Evidence, Steps
from optimist.training.selection.fitted_q import Values, policy_values
from optimist.training.selection.importance import Weighted, softened
from optimist.training.selection.support import Supported, support
from optimist.training.selection.today import corrections, observed_returns


class Estimators:
    """The estimators of one selection."""

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
        self._held = answers(evidence, sources, candidates, self._held_steps)

    @cached_property
    def _supported(self) -> Supported:
        steps = (self._learned_steps, self._held_steps)
        return support(self.evidence, self._learned, self._held, *steps, self._updates)

    @cached_property
    def values(self) -> Values:
        """The values at the start of every held-out episode."""
        return policy_values(
            self.evidence,
            self._learned,
            self._held,
            self._supported.learned,
            self._supported.held,
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
        each = zip(self._whose, self._held, self.values.fqe, self.values.surprises, strict=True)
        return [
            value
            + corrections(self.evidence, log, said.action, self._supported.propensities[log], surprises)
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
                zip(self.evidence.logs, self._supported.propensities, strict=True)
            )
        ]

    def _actions_on(self, log: int) -> list[np.ndarray]:
        return [said.action for said, mine in zip(self._held, self._whose, strict=True) if mine == log]

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

    @cached_property
    def importance(self) -> np.ndarray:
        return self._of_weighted(lambda found: found.values[0])

    def _of_weighted(self, read: Callable[[Weighted], np.ndarray]) -> np.ndarray:
        """A column of the weighted estimates, (C,)."""
        column = np.full(len(self.candidates), np.nan)
        for log, found in enumerate(self.weighted):
            if found is not None:
                column[self.evidence.whose == log] = read(found)
        return column

    @cached_property
    def agreement(self) -> np.ndarray:
        spec = self.evidence.spec
        reach = (
            None
            if spec.discrete
            else np.maximum((np.array(spec.action_high) - np.array(spec.action_low)) / 2, 1e-9)
        )
        groups = [
            (each.source, each.step, log) for each, log in zip(self.candidates, self._whose, strict=True)
        ]
        return agreement([each.action for each in self._held], groups, reach)

    @cached_property
    def scores(self) -> dict[str, np.ndarray]:
        """Every score by its name, (C,)."""
        return {
            "cautious": _means(self.values.cautious),
            "supported": _means(self.values.supported),
            "fqe": _means(self.values.fqe),
            "support": _means(self._supported.held),
            "agreement": self.agreement,
            "importance": self.importance,
            "effective_episodes": self._of_weighted(lambda found: found.effective),
        }


def _means(columns: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([float(np.mean(column)) for column in columns])
