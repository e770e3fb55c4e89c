"""What each seed of an offline run learns from, and what is held back from it."""

import hashlib
from collections.abc import Callable
from typing import Any

from optimist.data.dataset import Dataset
from optimist.data.paper_sampling import SAMPLERS
from optimist.data.returns_to_go import LoggedValues, logged_values
from optimist.data.sampling import Sampler
from optimist.training.offline_settings import Training

HELD_OUT_BATCH = 256  # transitions


def whole(dataset: Dataset) -> Dataset:
    """The whole dataset: the default part."""
    return dataset


class SeedLogs:
    """The logs of all seeds: each the same part of the dataset, or each a part of its own player's log."""

    def __init__(
        self,
        dataset: Dataset,
        training: Training,
        seeds: tuple[int, ...],
        part: Callable[[Dataset], Dataset] = whole,
    ):
        self.seeds, self._share = seeds, training.hold_out
        self.dataset, held = self._divided(part(dataset))
        self.logs, self.held = [self.dataset] * len(seeds), [held] * len(seeds)
        own = training.data_per_seed == "own"
        if own:
            each = [self._divided(part(dataset.played_by(seed))) for seed in seeds]
            self.logs, self.held = [kept for kept, _ in each], [held for _, held in each]
        self.fingerprint = self.dataset.fingerprint
        if own and self.fingerprint != dataset.fingerprint:  # a part of each log
            joined = " ".join(log.fingerprint for log in self.logs)
            self.fingerprint = hashlib.sha256(joined.encode()).hexdigest()

    def _divided(self, log: Dataset) -> tuple[Dataset, Dataset | None]:
        """What is learned from, and what is held back."""
        return log.hold_out(self._share) if self._share else (log, None)

    def samplers(self, training: Training, next_actions: bool) -> list[Sampler]:
        """The minibatches of each seed, by settled settings."""
        kind = SAMPLERS[training.sampling]
        return [
            _sampler(kind, log, training.batch, training, seed, next_actions)
            for log, seed in zip(self.logs, self.seeds, strict=True)
        ]

    def held_out_samplers(self, training: Training, next_actions: bool) -> list[Sampler]:
        """The held-back transitions of each seed; none if nothing is held back."""
        return [
            _sampler(Sampler, held, HELD_OUT_BATCH, training, seed, next_actions)
            for held, seed in zip(self.held, self.seeds, strict=True)
            if held
        ]

    def logged_values(self, training: Training) -> list[LoggedValues]:
        """The returns-to-go of each seed's log, with rewards as they are trained; one log is read once."""
        clip: Any = training.clip_rewards
        scale: Any = training.reward_scale
        found = {
            log.fingerprint: logged_values(log, training.gamma, clip=clip, scale=scale)
            for log in {log.fingerprint: log for log in self.logs}.values()
        }
        return [found[log.fingerprint] for log in self.logs]


def _sampler(
    kind: Callable[..., Sampler], log: Dataset, batch: int, training: Training, seed: int, next_actions: bool
) -> Sampler:
    clip: Any = training.clip_rewards  # settled: a number or None
    scale: Any = training.reward_scale  # settled: a number
    return kind(log, batch, training.gamma, training.n_step, clip, seed, scale, next_actions)
