"""All scores of all candidates. Results that several estimators need are computed once."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from optimist.data.sampling import Sampler
from optimist.training.selection.agreement import agreement
from optimist.training.selection.bvft import tournament
from optimist.training.selection.candidates import Candidate, Source
from optimist.training.selection.decisions import answers
from optimist.training.selection.drift import complete_steps, overestimation
from optimist.training.selection.evidence import Evidence, Steps
from optimist.training.selection.fitted_q import Values, policy_values
from optimist.training.selection.importance import weighted_return
from optimist.training.selection.supervised_bellman import bellman_errors
from optimist.training.selection.support import Supported, support


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
    def quick_scores(self) -> dict[str, np.ndarray]:
        """The scores for which nothing is fitted, by name, (C,)."""
        return {
            "overestimation": self._overestimations(),
            "agreement": self._agreement(),
            "tournament_loss": self._tournament(),
            "importance": self._importance(),
        }

    def scores(self, slow: bool) -> dict[str, np.ndarray]:
        """Every score by its name, (C,)."""
        nothing = np.full(len(self.candidates), np.nan)
        return {
            "cautious": _means(self.values.cautious),
            "supported": _means(self.values.supported),
            "fqe": _means(self.values.fqe),
            "support": _means(self._supported.held),
            **self.quick_scores,
            "bellman_error": self._bellman_errors() if slow else nothing,
        }

    def _scale(self, candidate: Candidate) -> float:
        return float(self.sources[candidate.source].training.get("reward_scale", 1.0))

    def _sampler(self, candidate: Candidate, view: Any) -> Sampler:
        """The transitions of a view as the candidate's run trained on them."""
        training = self.sources[candidate.source].training
        clip, gamma = training.get("clip_rewards"), training.get("gamma", 0.99)
        return Sampler(view, 1, gamma, 1, clip, 0, self._scale(candidate))

    def _trained_on(self, which: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Reward and discount of every step for each candidate; runs with equal settings share them."""
        known = dict[Any, tuple[np.ndarray, np.ndarray]]()
        found = []
        for candidate, log in zip(self.candidates, self._whose, strict=True):
            key = (candidate.source, log)
            if key not in known:
                rows = self._sampler(candidate, getattr(self.evidence.logs[log], which)).all_rows()
                known[key] = (rows.reward, rows.discount)
            found.append(known[key])
        return found

    def _overestimations(self) -> np.ndarray:
        found = []
        complete = [complete_steps(log.held, self.evidence.rewards.gamma) for log in self.evidence.logs]
        returns = self.evidence.held_returns
        for candidate, log, said in zip(self.candidates, self._whose, self._held, strict=True):
            estimates = said.estimate / self._scale(candidate)
            found.append(overestimation(estimates, returns[log], complete[log], said.logged_value))
        return np.array(found)

    def _agreement(self) -> np.ndarray:
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

    def _tournament(self) -> np.ndarray:
        found = np.full(len(self.candidates), np.nan)
        rewards = self._trained_on("held")
        for log in set(self._whose):
            mine = [number for number, its in enumerate(self._whose) if its == log]
            values, targets = [], []
            for number in mine:
                said, (reward, discount) = self._held[number], rewards[number]
                scale = self._scale(self.candidates[number])
                values.append(said.logged_value / scale)
                targets.append((reward + discount * said.next_estimate) / scale)
            found[mine] = tournament(values, targets)
        return found

    def _importance(self) -> np.ndarray:
        logs, rewards = self.evidence.logs, self.evidence.rewards
        each = zip(self._whose, self._held, strict=True)
        return np.array([weighted_return(logs[log].held, said.action, rewards) for log, said in each])

    def _bellman_errors(self) -> np.ndarray:
        return bellman_errors(
            self.evidence,
            self._learned,
            self._held,
            self._held_steps,
            self._trained_on("learned"),
            [self._scale(candidate) for candidate in self.candidates],
            self._updates,
        )


def _means(columns: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([float(np.mean(column)) for column in columns])
