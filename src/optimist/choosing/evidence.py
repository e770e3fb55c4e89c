"""The log as the estimators see it: episodes to fit networks to, and held-out episodes to score on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from optimist.choosing.candidates import Candidate, Source
from optimist.data.dataset import Dataset
from optimist.data.returns_to_go import logged_values, returns_to_go
from optimist.data.sampling import Sampler
from optimist.data.views import View
from optimist.errors import DataError, RunError
from optimist.training.feeding import DeviceFeed, frame_bytes
from optimist.training.run import Run
from optimist.training.scaling import Inputs, measured, takes_scaling
from optimist.training.seed_logs import USUAL_SHARE, HoldOut, SeedLogs, whole
from optimist.training.settings import Training
from optimist.training.storage.configuration import IN_MEMORY

ROOM = 2**30  # bytes for the frames and for the actions and values of every candidate at every step
CHUNK_BYTES = 2**24  # of observations that a network reads at once


class Log(NamedTuple):
    """The data of one or more candidates."""

    learned: Dataset
    held: Dataset


@dataclass(frozen=True)
class Rewards:
    """The discount and the limit of rewards by which values are computed; `limit` clips logged rewards."""

    gamma: float
    limit: float | None

    @classmethod
    def of(cls, sources: Sequence[Source]) -> "Rewards":
        """The settings of the runs. If runs differ: the largest discount, and rewards without a limit."""
        limits = {_limit(source.training) for source in sources}
        gamma = max(source.training.get("gamma", 0.99) for source in sources)
        return cls(float(gamma), limits.pop() if len(limits) == 1 else None)

    def clipped(self, rewards: np.ndarray) -> np.ndarray:
        return rewards if self.limit is None else np.clip(rewards, -self.limit, self.limit)

    def returns(self, view: View) -> np.ndarray:
        """The discounted sum of rewards from each step to the end of its range."""
        return returns_to_go(view, self.gamma, clip=self.limit)


def _limit(training: dict[str, Any]) -> float | None:
    """The largest reward, in the log's unit: training multiplies before it clips."""
    limit = training.get("clip_rewards")
    return None if limit is None else float(f"{limit / training.get('reward_scale', 1.0):.5g}")


class Steps:
    """All transitions of some views on the device, one view for each log, in the order of the views."""

    def __init__(self, views: Sequence[View], rewards: Rewards, batch: int = 1, scale: float = 1.0):
        limit = None if rewards.limit is None else rewards.limit * scale
        self.views = list(views)
        self.samplers = [Sampler(view, batch, rewards.gamma, 1, limit, 0, scale) for view in views]
        self.feed = DeviceFeed(self.samplers)
        self.lengths = [len(view) for view in views]
        self.begins = np.cumsum([0, *self.lengths])[:-1]

    def chunks(self, log: int) -> Iterator[tuple[np.ndarray, slice]]:
        """The positions of a log in equal chunks, the last one padded, and the place of each chunk. The size
        of a chunk is a power of two: logs of similar lengths then share their programs."""
        view = self.views[log]
        size = int(np.prod(view.spec.observation_shape)) * 4
        most = max(1, CHUNK_BYTES // size)
        count = min(1 << (most.bit_length() - 1), 1 << (len(view) - 1).bit_length())
        for first in range(0, len(view), count):
            inside = np.minimum(np.arange(first, first + count), len(view) - 1)
            yield inside, slice(first, min(first + count, len(view)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """All data about the candidates, except the actions and values that they compute themselves."""

    logs: tuple[Log, ...]
    whose: np.ndarray  # the number of each candidate's log, (C,)
    rewards: Rewards
    notes: tuple[str, ...]
    unseen: bool = True  # did no candidate learn from the held-out episodes?

    @property
    def spec(self):
        return self.logs[0].learned.spec

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
    def typical(self) -> float:
        """The mean return-to-go, with which networks begin; what follows a cut episode counts as the mean."""
        clip, gamma = self.rewards.limit, self.rewards.gamma
        return float(np.mean([logged_values(log.learned, gamma, clip=clip).mean for log in self.logs]))

    @cached_property
    def unit(self) -> float:
        """The unit in which networks learn returns: their spread."""
        returns = np.concatenate(self.returns)
        return float(returns.std()) or float(np.abs(returns).max()) or 1.0

    @property
    def lowest(self) -> float:
        """The lowest return in the log; at most zero, because an episode may end at once."""
        return min(0.0, *(float(each.min()) for each in self.returns))

    def starts(self, log: int) -> np.ndarray:
        """The positions at which the held-out episodes begin."""
        return self.logs[log].held.offsets[:-1]


def gather(
    sources: Sequence[Source],
    candidates: Sequence[Candidate],
    data: Dataset | str | Path | None = None,
    part: Callable[[Dataset], Dataset] = whole,
    most: int | None = None,
) -> Evidence:
    """The evidence about these candidates, from the data of their runs or from `data`. `part` selects
    the part of each log that may be used; about `most` of its steps are used."""
    dataset, notes = _opened(sources[0], data), list[str]()
    known = dict[int | None, Log]()
    owners = [candidate.seed if sources[candidate.source].own_logs else None for candidate in candidates]
    hold_out, unseen = _held_out(sources, dataset, part)
    for owner in dict.fromkeys(owners):
        log = part(dataset if owner is None else dataset.played_by(owner))
        known[owner] = _thinned(_divided(log, hold_out), candidates, len(set(owners)), most, notes)
    if any(log.held is log.learned for log in known.values()):
        notes.append("the log has one episode, so the policies are scored on what they learned from")
        unseen = False
    elif not unseen:
        notes.append(
            "the policies are scored on episodes from which they learned; --hold-out 0.1 avoids this"
        )
    rewards = Rewards.of(sources)
    if (
        len({_limit(each.training) for each in sources}) > 1
        or len({each.training.get("gamma") for each in sources}) > 1
    ):
        notes.append(f"the runs differ in discount or rewards: values are for gamma {rewards.gamma:g}")
    places = list(known)
    whose = np.array([places.index(owner) for owner in owners])
    return Evidence(tuple(known.values()), whose, rewards, tuple(dict.fromkeys(notes)), unseen)


def _opened(source: Source, data: Dataset | str | Path | None) -> Dataset:
    if data is None:
        dataset = _log_of(source.run)
    else:
        dataset = data if isinstance(data, Dataset) else Dataset.open(data)
    if source.recording not in (dataset.fingerprint, dataset.recording):
        raise RunError(
            f"{data or source.run.data} is not the data that {source.path} learned from, or it has grown "
            "since: name a copy from before with --data DATA, or train again"
        )
    return dataset


def _log_of(run: Run) -> Dataset:
    try:
        return run.log()
    except (DataError, OSError) as problem:
        if run.data == IN_MEMORY:
            remedy = "pass it as data=, or save it and name its folder with --data DATA"
            raise DataError(f"{problem}: {remedy}") from problem
        if Path(run.data).exists():
            raise
        raise DataError(
            f"{run.data}, the data of {run.path}, is missing: name its folder with --data DATA"
        ) from problem


def _held_out(
    sources: Sequence[Source], dataset: Dataset, part: Callable[[Dataset], Dataset]
) -> tuple[HoldOut, bool]:
    """The episodes to score on, and whether no run learned from them. That is so if every run
    learned from exactly the other episodes: a run that used a smaller part held out different episodes."""
    known = {HoldOut.of(source.training) for source in sources}
    hold_out = known.pop() if len(known) == 1 else HoldOut()
    if not hold_out.share:
        return HoldOut(USUAL_SHARE), False
    return hold_out, all(_learned_from_the_others(source, dataset, hold_out, part) for source in sources)


def _learned_from_the_others(
    source: Source, dataset: Dataset, hold_out: HoldOut, part: Callable[[Dataset], Dataset]
) -> bool:
    own_logs: dict[str, Any] = {"data_per_seed": "own" if source.own_logs else "whole"}
    training = Training(**hold_out.as_settings(), **own_logs)
    logs = SeedLogs(dataset, training, source.run.seeds, part)
    return bool(source.config["dataset"]["fingerprint"] == logs.fingerprint)


def _divided(log: Dataset, hold_out: HoldOut) -> Log:
    """The episodes to fit to and those to score on. A single episode is both: there is no other."""
    return Log(*log.hold_out(hold_out.share, last=hold_out.last)) if len(log.starts) > 1 else Log(log, log)


def _thinned(log: Log, candidates: Sequence[Candidate], logs: int, most: int | None, notes: list[str]) -> Log:
    """The log, or as many of its episodes as are wanted and there is room for. The log is
    divided first, because a run holds out episodes of the whole log; a part would give different ones."""
    spec, steps = log.learned.spec, len(log.learned) + len(log.held)
    action = int(np.prod(spec.action_shape)) * 4
    each = frame_bytes(spec) + len(candidates) / logs * (2 * action + 8)
    room = max(1, int(ROOM / logs / each))
    share = min(room, most or room) / steps
    if share >= 1 or len(log.learned.starts) < 2:
        return log
    part = Log(log.learned.fraction(share), log.held.fraction(share))
    used = len(part.learned) + len(part.held)
    notes.append(f"{used:,} of {steps:,} steps are used, a random share of the episodes")
    return part


def stacked_on_device(arrays: Sequence[np.ndarray]) -> Any:
    """Arrays of unequal length as one, (C, longest, ...); the padding is never read."""
    longest = max(len(array) for array in arrays)
    out = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), arrays[0].dtype)
    for place, array in enumerate(arrays):
        out[place, : len(array)] = array
    return jnp.asarray(out)
