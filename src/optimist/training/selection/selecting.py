"""`select`: fits the estimators to the log, ranks all kept policies, and records the choice."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.files import make_folder
from optimist.data.sampling import Sampler
from optimist.errors import UsageError
from optimist.training.evaluation import evaluate
from optimist.training.selection import choice
from optimist.training.selection.agreement import agreement
from optimist.training.selection.bvft import tournament
from optimist.training.selection.candidates import Candidate, Source, candidates_of, read_sources
from optimist.training.selection.decisions import answers
from optimist.training.selection.drift import complete_steps, overestimation
from optimist.training.selection.evidence import Evidence, Steps, gather
from optimist.training.selection.fitted_q import policy_values
from optimist.training.selection.halving import halved
from optimist.training.selection.importance import weighted_return
from optimist.training.selection.supervised_bellman import bellman_errors
from optimist.training.selection.support import support
from optimist.training.storage.run_folder import fingerprint
from optimist.training.storage.selected import write_selection

UPDATES = 10_000
SHOWN = 5  # lines of a ranking
log = logging.getLogger("optimist")


@dataclass(frozen=True)
class Ranked:
    """A candidate in the ranking. `value` is by the rule; its interval is over held-out episodes."""

    run: Path
    agent: str
    step: int
    seed: int
    value: float
    low: float | None
    high: float | None
    support: float
    scores: dict[str, float | None]
    returns: tuple[float, ...] = ()  # of real episodes, if some were played

    @property
    def name(self) -> str:
        return f"{self.run} step {self.step:,} seed {self.seed}"

    def record(self) -> dict[str, Any]:
        known = {"run": str(self.run), "agent": self.agent, "step": self.step, "seed": self.seed}
        known |= {"value": self.value, "low": self.low, "high": self.high, "support": self.support}
        return {**known, "scores": self.scores, "returns": list(self.returns)}


@dataclass(frozen=True)
class Selection:
    """The ranking of all kept policies of some runs; `chosen` is the one to ship."""

    rule: str
    ranking: tuple[Ranked, ...]
    notes: tuple[str, ...]
    facts: dict[str, Any]
    fingerprints: dict[Path, str] = field(repr=False)

    @property
    def chosen(self) -> Ranked:
        return self.ranking[0]

    @cached_property
    def runs(self) -> dict[Path, Ranked]:
        """The chosen policy of each run."""
        return {each.run: each for each in reversed(self.ranking)}

    def __repr__(self) -> str:
        lines = [f"Selection of {len(self.ranking)} policies of {len(self.runs)} runs by {self.rule}"]
        for place, each in enumerate(self.ranking[:SHOWN], 1):
            lines.append(f"  {place}. {each.name:40} {value_in_words(each)}, support {each.support:.0%}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def record(self, run: Path | None = None) -> dict[str, Any]:
        """What is written down: about all runs, or about the policies of one run."""
        mine = [each for each in self.ranking if run is None or each.run == run]
        first = {(each.run, each.seed): each.step for each in reversed(mine)}
        facts = {**self.facts, "rule": self.rule, "notes": list(self.notes)}
        facts["every_rule"] = any(each.scores["bellman_error"] is not None for each in self.ranking)
        chosen = {"run": str(mine[0].run), "step": mine[0].step, "seed": mine[0].seed}
        known: dict[str, Any] = {"fingerprint": self.fingerprints[run]} if run else {}
        if run:
            known["seeds"] = {str(seed): step for (_, seed), step in sorted(first.items())}
        return {**facts, **known, "chosen": chosen, "candidates": [each.record() for each in mine]}

    def write(self, out: Path | None = None) -> None:
        """Write selection.json into the folder of every run, and one about all runs into `out`."""
        for run in self.runs:
            write_selection(run, self.record(run))
        if out:
            make_folder(out)
            write_selection(out, self.record())


def value_in_words(ranked: Ranked) -> str:
    if ranked.low is None:
        return f"score {ranked.value:.4g}"
    return f"value {ranked.value:.4g} ({ranked.low:.4g} to {ranked.high:.4g})"


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
) -> Selection:
    """Rank every kept policy of every seed of these runs by their log alone, or with `episodes` real episodes
    for the best of them. `every_rule` also computes the scores of rules that take long."""
    choice.check_rule(rule)
    if updates < 1 or episodes < 0:
        raise UsageError(f"{updates} updates, {episodes} episodes: choose at least 1, and at least 0")
    sources = read_sources(runs, allow)
    candidates = candidates_of(sources)
    evidence = gather(sources, candidates, data)
    estimators = Estimators(evidence, sources, candidates, updates)
    scores = estimators.scores(slow=every_rule or rule == "sbv")
    names = [f"{sources[each.source].path} step {each.step:,} seed {each.seed}" for each in candidates]
    order = choice.ranked(rule, scores)
    notes = [*choice.doubts(order, scores, names), *evidence.notes]
    returns = dict[int, list[float]]()
    if episodes:
        order, returns = halved(order, episodes, _player(sources, candidates, environment))
        played = sum(map(len, returns.values()))
        notes.append(f"{played} real episodes reordered the first {len(returns)} policies")
    facts = {
        "data": sources[0].run.data,
        "recording": sources[0].recording,
        "gamma": evidence.rewards.gamma,
        "updates": updates,
        "episodes": sum(map(len, returns.values())),
        "runs": len(sources),
    }
    ranking = [estimators.ranked(number, rule, scores, returns.get(number, [])) for number in order]
    fingerprints = {source.path: fingerprint(source.config) for source in sources}
    return Selection(rule, tuple(ranking), tuple(notes), facts, fingerprints)


class Estimators:
    """All scores of all candidates. What several of them need is computed once."""

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
    def _supported(self) -> Any:
        steps = (self._learned_steps, self._held_steps)
        return support(self.evidence, self._learned, self._held, *steps, self._updates)

    @cached_property
    def values(self) -> Any:
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

    def scores(self, slow: bool) -> dict[str, np.ndarray]:
        """Every score by its name, (C,)."""
        nothing = np.full(len(self.candidates), np.nan)
        return {
            "supported": _means(self.values.supported),
            "fqe": _means(self.values.fqe),
            "support": _means(self._supported.held),
            "overestimation": self._overestimations(),
            "agreement": self._agreement(),
            "tournament_loss": self._tournament(),
            "importance": self._importance(),
            "bellman_error": self._bellman_errors() if slow else nothing,
        }

    def ranked(self, number: int, rule: str, scores: choice.Scores, returns: list[float]) -> Ranked:
        candidate = self.candidates[number]
        source = self.sources[candidate.source]
        low = high = None
        if rule in ("supported", "fqe"):
            low, high = choice.interval(getattr(self.values, rule)[number])
        return Ranked(
            run=source.path,
            agent=source.agent,
            step=candidate.step,
            seed=candidate.seed,
            value=float(scores[choice.RULES[rule].score][number]),
            low=low,
            high=high,
            support=float(scores["support"][number]),
            scores={name: _finite(float(score[number])) for name, score in scores.items()},
            returns=tuple(returns),
        )

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


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _player(sources: Sequence[Source], candidates: Sequence[Candidate], environment: str) -> Any:
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
