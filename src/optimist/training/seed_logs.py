"""What each seed of an offline run learns from, and what is held back from it."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from optimist.data.dataset import Dataset
from optimist.data.sampling import SAMPLERS, Sampler
from optimist.data.views import LoggedValues, episodes_in_words, logged_values
from optimist.training.settings import AUTO, Training

HELD_OUT_BATCH = 256  # transitions
USUAL_SHARE, FEWEST = 0.1, 10  # of the episodes; a tenth of fewer is not one


def whole(dataset: Dataset) -> Dataset:
    """The whole dataset: the default part."""
    return dataset


class HoldOut(NamedTuple):
    """Which episodes of a log are held back: a random share, or the last."""

    share: float = 0.0
    last: bool = False

    @classmethod
    def of(cls, training: Mapping[str, Any]) -> "HoldOut":
        """As the settings of a run say."""
        last = training.get("hold_out_last")
        return cls(float(last), last=True) if last else cls(float(training.get("hold_out", 0.0)))

    def as_settings(self) -> dict[str, Any]:
        return {"hold_out_last": self.share} if self.last else {"hold_out": self.share}

    def divide(self, log: Dataset) -> tuple[Dataset, Dataset | None]:
        """What is learned from, and what is held back."""
        return log.hold_out(self.share, last=self.last) if self.share else (log, None)


class SeedLogs:
    """The logs of all seeds: each the same part of the dataset, or each a part of its own player's log."""

    def __init__(
        self,
        dataset: Dataset,
        training: Training,
        seeds: tuple[int, ...],
        part: Callable[[Dataset], Dataset] = whole,
    ):
        self.seeds, divide = seeds, HoldOut.of(vars(training)).divide
        self.dataset, held = divide(part(dataset))
        self.logs, self.held = [self.dataset] * len(seeds), [held] * len(seeds)
        self.fingerprint = self.dataset.fingerprint
        if training.data_per_seed == "own":
            each = [divide(log) for log in parts(dataset, training, seeds, part)]
            self.logs, self.held = [kept for kept, _ in each], [held for _, held in each]
            if self.fingerprint != dataset.fingerprint:  # a part of each log
                joined = " ".join(log.fingerprint for log in self.logs)
                self.fingerprint = hashlib.sha256(joined.encode()).hexdigest()

    def samplers(self, training: Training, next_actions: bool, *, held: bool = False) -> list[Sampler]:
        """The minibatches of each seed, by settled settings; or its held-back transitions, of the seeds that
        have some."""
        kind, batch, logs = (
            SAMPLERS[training.sampling],
            training.batch,
            list(zip(self.logs, self.seeds, strict=True)),
        )
        if held:
            kind, batch = Sampler, HELD_OUT_BATCH
            logs = [(log, seed) for log, seed in zip(self.held, self.seeds, strict=True) if log]
        clip, scale = self._rewards(training)
        return [
            kind(log, batch, training.gamma, training.n_step, clip, seed, scale, next_actions)
            for log, seed in logs
        ]

    def logged_values(self, training: Training) -> list[LoggedValues]:
        """The returns-to-go of each seed's log, with rewards as they are trained; one log is read once."""
        clip, scale = self._rewards(training)
        values = {
            log.fingerprint: logged_values(log, training.gamma, clip=clip, scale=scale)
            for log in {log.fingerprint: log for log in self.logs}.values()
        }
        return [values[log.fingerprint] for log in self.logs]

    def _rewards(self, training: Any) -> tuple[float | None, float]:
        """Their limit and their scale, which are settled: no longer "auto"."""
        return training.clip_rewards, training.reward_scale


def parts(
    dataset: Dataset, training: Training, seeds: tuple[int, ...], part: Callable[[Dataset], Dataset]
) -> list[Dataset]:
    """The part of each log of which the seeds learn."""
    own = training.data_per_seed == "own"
    return [part(dataset.played_by(seed)) for seed in seeds] if own else [part(dataset)]


def hold_out_remark(asked: Training, data: SeedLogs, environment: str | None) -> list[str]:
    """What is held out although nobody said so, or why nothing is."""
    if asked.hold_out != AUTO or asked.hold_out_last or environment:
        return []
    held = sum(len(log.starts) for log in {id(log): log for log in data.held if log}.values())
    learned = sum(len(log.starts) for log in {id(log): log for log in data.logs}.values())
    if not held:
        return [
            f"the log has {episodes_in_words(learned)}, too few to hold some out: nothing shows when to stop"
        ]
    return [
        f"{held:,} of {held + learned:,} episodes are held out, to see how the loss goes on what is not "
        "learned from; --hold-out 0 learns from all"
    ]
