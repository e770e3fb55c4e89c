"""What a selection compares, and by what: the kept policies of some runs, and the episodes of their logs.

Networks are fitted to one part of the episodes; the policies are scored on the others, which are held out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.sampling import Sampler
from optimist.data.views import LoggedValues, View, logged_values, returns_to_go
from optimist.errors import DataError, RunError, UsageError
from optimist.training.feeding import DeviceFeed
from optimist.training.run import Run, load_run
from optimist.training.scaling import Inputs, measured, takes_scaling
from optimist.training.seed_logs import USUAL_SHARE, HoldOut, SeedLogs, whole
from optimist.training.settings import Training
from optimist.training.storage.checkpoint import kept_steps, load_policy
from optimist.training.storage.configuration import IN_MEMORY, fingerprint
from optimist.training.storage.run_folder import read_config, refuse_unless_run

ROOM = 2**30  # bytes for the frames and for the actions and values of every candidate at every step
CHUNK_BYTES = 2**24  # of observations that a network reads at once


@dataclass(frozen=True, eq=False)
class Source:
    """A run whose kept policies are candidates."""

    run: Run  # at one of its kept steps
    config: dict[str, Any]

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def training(self) -> dict[str, Any]:
        settings: dict[str, Any] = self.config["training"]
        return settings

    @property
    def recording(self) -> str:
        """The fingerprint of the whole dataset, of which the run may have learned a part."""
        data = self.config["dataset"]
        return str(data.get("recording", data["fingerprint"]))

    @property
    def own_logs(self) -> bool:
        """Did each seed learn from the log of its own player?"""
        return self.training.get("data_per_seed") == "own"

    @property
    def largest_reward(self) -> float | None:
        """The limit of rewards in the log's unit: training multiplies before it clips."""
        limit = self.training.get("clip_rewards")
        return None if limit is None else float(f"{limit / self.training.get('reward_scale', 1.0):.5g}")

    def params(self, step: int) -> dict:
        """The parameters of every seed at a kept step."""
        shapes = self.run.learner.shapes(self.run.seeds).params
        params: dict = load_policy(self.path, step, shapes, fingerprint(self.config))
        return params


class Candidate(NamedTuple):
    """One policy: one seed of a run at a step whose parameters were kept."""

    source: Source
    step: int
    seed: int
    log: int  # the number of its log

    @property
    def row(self) -> int:
        """Where its parameters are among those of all seeds."""
        return self.source.run.seeds.index(self.seed)

    @property
    def name(self) -> str:
        return f"{self.source.path} step {self.step:,} seed {self.seed}"


class Log(NamedTuple):
    """The data of one or more candidates."""

    learned: Dataset
    held: Dataset


@dataclass(frozen=True)
class Rewards:
    """The discount and the limit of rewards by which values are computed; `limit` clips logged rewards."""

    gamma: float
    limit: float | None

    def clipped(self, rewards: np.ndarray) -> np.ndarray:
        return rewards if self.limit is None else np.clip(rewards, -self.limit, self.limit)

    def returns(self, view: View) -> np.ndarray:
        """The discounted sum of rewards from each step to the end of its range."""
        return returns_to_go(view, self.gamma, clip=self.limit)


class Steps:
    """All transitions of some views on the device, one view for each log, in the order of the views."""

    def __init__(self, views: Sequence[View], rewards: Rewards, batch: int = 1, scale: float = 1.0):
        limit = None if rewards.limit is None else rewards.limit * scale
        self.views = list(views)
        self.feed = DeviceFeed([Sampler(view, batch, rewards.gamma, 1, limit, 0, scale) for view in views])
        self.begins = np.cumsum([0, *map(len, views)])[:-1]

    def read(self, ask: Callable[..., Any], problem: Any, params: Any, log: int, *own: np.ndarray) -> Any:
        """`ask(problem, params, batch, *own)` at all steps of a log; each `own` has one entry for each."""
        parts = []
        for inside in self.chunks(log):
            at = jnp.asarray(self.begins[log] + inside)
            mine = [column[inside] for column in own]
            answer = _asked(ask, problem, params, self.feed.minibatch, self.feed.resident, at, mine)
            parts.append(jax.tree.map(np.asarray, answer))
        length = len(self.views[log])
        return jax.tree.map(lambda *columns: np.concatenate(columns)[:length], *parts)

    def chunks(self, log: int) -> Iterator[np.ndarray]:
        """The positions of a log in equal chunks, the last one padded. The size of a chunk is a power of two:
        logs of similar lengths then share their programs."""
        view = self.views[log]
        most = max(1, CHUNK_BYTES // (4 * int(np.prod(view.spec.observation_shape))))
        count = min(1 << (most.bit_length() - 1), 1 << (len(view) - 1).bit_length())
        for first in range(0, len(view), count):
            yield np.minimum(np.arange(first, first + count), len(view) - 1)


@partial(jax.jit, static_argnames=("ask", "problem", "minibatch"))
def _asked(ask, problem, params, minibatch, resident, at, own):
    return ask(problem, params, minibatch(resident, at), *own)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The candidates and their data, except the actions and values that they compute themselves."""

    candidates: tuple[Candidate, ...]
    logs: tuple[Log, ...]
    rewards: Rewards
    notes: tuple[str, ...] = ()
    unseen: bool = True  # did no candidate learn from the held-out episodes?

    @property
    def spec(self):
        return self.logs[0].learned.spec

    @cached_property
    def whose(self) -> np.ndarray:
        """The number of each candidate's log, (C,)."""
        return np.array([candidate.log for candidate in self.candidates])

    @cached_property
    def inputs(self) -> Inputs | None:
        """The scaling of observations for the networks that are fitted here."""
        if not takes_scaling(self.spec):
            return None
        return measured([log.learned for log in self.logs], "standard")

    @cached_property
    def returns(self) -> list[np.ndarray]:
        """The discounted return-to-go of every learned step of each log."""
        return [self.rewards.returns(log.learned) for log in self.logs]

    @cached_property
    def logged(self) -> list[LoggedValues]:
        """The mean and the largest return-to-go of each log; after a cut episode it counts as the mean."""
        clip, gamma = self.rewards.limit, self.rewards.gamma
        return [logged_values(log.learned, gamma, clip=clip) for log in self.logs]

    @property
    def typical(self) -> float:
        """The mean return-to-go, with which networks begin."""
        return float(np.mean([log.mean for log in self.logged]))

    @cached_property
    def unit(self) -> float:
        """The unit in which networks learn returns: their spread."""
        returns = np.concatenate(self.returns)
        return float(returns.std()) or float(np.abs(returns).max()) or 1.0

    @property
    def lowest(self) -> float:
        """The lowest return in the log; at most zero, because an episode may end at once."""
        return min(0.0, *(float(each.min()) for each in self.returns))

    @property
    def possible(self) -> tuple[float, float]:
        """The lowest and the highest value that the log bears out: none is beyond its largest return-to-go.
        Rewards at every step to come would allow far more, and FQE has gone there on small logs."""
        views, largest = [log.learned for log in self.logs], max(log.largest for log in self.logged)
        rewards = np.concatenate([view.timeline.reward[view.steps()] for view in views])
        return -largest if rewards.min() < 0 else 0.0, largest if rewards.max() > 0 else 0.0


def read_sources(paths: Iterable[str | Path], allow: Iterable[str] = ()) -> list[Source]:
    """The runs in these folders; they must have learned from the same data and keep policies."""
    folders, allow = [Path(path) for path in paths], tuple(allow)
    if not folders:
        raise UsageError("name at least one run: optimist select RUN [RUN ...]")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError("a run is named twice: name each run once")
    sources = []
    for folder in folders:
        refuse_unless_run(folder)
        config = read_config(folder)
        if "fingerprint" not in config.get("dataset", {}) or "training" not in config:
            learned = "learned from its own play, not from a dataset"
            raise RunError(f"{folder} {learned}: select among offline runs")
        if not (steps := kept_steps(folder)):
            remedy = "train again with --keep-policies above 0, into another folder"
            raise RunError(f"{folder} keeps no policies: {remedy}")
        sources.append(Source(load_run(folder, allow, steps[0]), config))
    first = sources[0]
    for other in sources[1:]:
        if other.recording != first.recording:
            raise RunError(
                f"{other.path} learned from {other.run.data}, {first.path} from {first.run.data}: "
                "their values cannot be compared; select among runs of one dataset"
            )
    return sources


def gather(
    sources: Sequence[Source],
    data: Dataset | str | Path | None = None,
    part: Callable[[Dataset], Dataset] = whole,
    most: int | None = None,
) -> Evidence:
    """Every kept policy of every seed of these runs with the evidence about it, from the data of the runs or
    from `data`. `part` selects the part of each log that may be used; about `most` of its steps are used.
    If runs differ: the largest discount, and rewards without a limit."""
    dataset, notes = _opened(sources[0], data), list[str]()
    # Each player's log is one of its own, the whole dataset is that of nobody.
    owner = {(each, seed): seed if each.own_logs else None for each in sources for seed in each.run.seeds}
    owners = list(dict.fromkeys(owner.values()))
    candidates = tuple(
        Candidate(source, step, seed, owners.index(owner[source, seed]))
        for source in sources
        for step in source.run.kept
        for seed in source.run.seeds
    )
    hold_out, unseen = _held_out(sources, dataset, part)
    logs = list[Log]()
    for player in owners:
        log = part(dataset if player is None else dataset.played_by(player))
        several = len(log.starts) > 1  # a single episode is fitted to and scored on: there is no other
        divided = Log(*log.hold_out(hold_out.share, last=hold_out.last)) if several else Log(log, log)
        logs.append(_thinned(divided, len(candidates) / len(owners), len(owners), most, notes))
    if any(log.held is log.learned for log in logs):
        notes.append("the log has one episode, so the policies are scored on what they learned from")
        unseen = False
    elif not unseen:
        notes.append(
            "the policies are scored on episodes from which they learned; --hold-out 0.1 avoids this"
        )
    limits = {source.largest_reward for source in sources}
    gammas = {float(source.training.get("gamma", 0.99)) for source in sources}
    rewards = Rewards(max(gammas), limits.pop() if len(limits) == 1 else None)
    if len(limits) > 1 or len(gammas) > 1:
        notes.append(f"the runs differ in discount or rewards: values are for gamma {rewards.gamma:g}")
    return Evidence(candidates, tuple(logs), rewards, tuple(dict.fromkeys(notes)), unseen)


def _opened(source: Source, data: Dataset | str | Path | None) -> Dataset:
    """The data of a run, or `data` if it is the same."""
    name = source.run.data if data is None else data
    try:
        dataset = (
            source.run.log() if data is None else data if isinstance(data, Dataset) else Dataset.open(data)
        )
    except (DataError, OSError) as problem:
        if data is None and name == IN_MEMORY:
            remedy = "pass it as data=, or save it and name its folder with --data DATA"
            raise DataError(f"{problem}: {remedy}") from problem
        if data is not None or Path(str(name)).exists():
            raise
        raise DataError(
            f"{name}, the data of {source.path}, is missing: name its folder with --data DATA"
        ) from problem
    if source.recording not in (dataset.fingerprint, dataset.recording):
        raise RunError(
            f"{name} is not the data that {source.path} learned from, or it has grown "
            "since: name a copy from before with --data DATA, or train again"
        )
    return dataset


def _held_out(
    sources: Sequence[Source], dataset: Dataset, part: Callable[[Dataset], Dataset]
) -> tuple[HoldOut, bool]:
    """The episodes to score on, and whether no run learned from them. That is so if every run
    learned from exactly the other episodes: a run that used a smaller part held out different episodes."""
    shares = {HoldOut.of(source.training) for source in sources}
    hold_out = shares.pop() if len(shares) == 1 else HoldOut()
    if not hold_out.share:
        return HoldOut(USUAL_SHARE), False

    def learned_from_the_others(source: Source) -> bool:
        own_logs: dict[str, Any] = {"data_per_seed": "own" if source.own_logs else "whole"}
        logs = SeedLogs(dataset, Training(**hold_out.as_settings(), **own_logs), source.run.seeds, part)
        return bool(source.config["dataset"]["fingerprint"] == logs.fingerprint)

    return hold_out, all(map(learned_from_the_others, sources))


def _thinned(log: Log, candidates: float, logs: int, most: int | None, notes: list[str]) -> Log:
    """The log, or as many of its episodes as are wanted and there is room for, with so many candidates. It is
    divided first, because a run holds out episodes of the whole log; a part would give different ones."""
    spec, steps = log.learned.spec, len(log.learned) + len(log.held)
    action = int(np.prod(spec.action_shape)) * 4
    room = max(1, int(ROOM / logs / (spec.frame_bytes + candidates * (2 * action + 8))))
    share = min(room, most or room) / steps
    if share >= 1 or len(log.learned.starts) < 2:
        return log
    part = Log(log.learned.fraction(share), log.held.fraction(share))
    used = len(part.learned) + len(part.held)
    notes.append(f"{used:,} of {steps:,} steps are used, a random share of the episodes")
    return part
