"""How an agent is trained on a dataset: the settings."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from optimist.data.sampling import SAMPLERS
from optimist.errors import UsageError, did_you_mean
from optimist.networks.precision import PRECISION, check_precision
from optimist.training.automatic import AUTO, CLIPPED, SCALED, check_clipping, is_scale
from optimist.training.evaluation import check_length, is_due
from optimist.training.guard import CONTINUE, RESPONSES
from optimist.training.inputs import check_kind
from optimist.training.kinds import demand
from optimist.training.loggers import USUAL

LOGS = ("whole", "own")
MOST_STEPS_AHEAD = 1000  # largest n of an n-step return: each step takes a pass over all transitions


@dataclass(frozen=True)
class Training:
    """How an agent is trained on a dataset; the defaults are the paper's."""

    steps: Annotated[int, "gradient steps"] = 12_500_000  # the paper's 1X
    evaluate_every: Annotated[int, "gradient steps between evaluations"] = 62_500
    episodes: Annotated[int, "full episodes per evaluation and seed"] = 20
    evaluation_steps: Annotated[int | None, "instead of episodes: full episodes until so many steps"] = None
    epsilon: Annotated[float, "share of random actions in evaluation"] = 0.001
    batch: Annotated[int, "transitions in a minibatch"] = 32
    gamma: Annotated[float, "the discount of a step"] = 0.99
    n_step: Annotated[int, "rewards summed before the bootstrap"] = 1
    clip_rewards: Annotated[float | Literal["auto"] | None, CLIPPED] = "auto"
    reward_scale: Annotated[float | str, SCALED] = AUTO
    observations: Annotated[
        str,
        "scale vectors: standard (mean 0, deviation 1, up to 10), range (-1 to 1), none, or auto: standard "
        "unless the log is by optimist collect",
    ] = "auto"
    precision: Annotated[str, PRECISION] = "tf32"
    hold_out: Annotated[
        float | Literal["auto"],
        "share of the episodes to measure losses on, and not to learn from; auto: 0.1 without an environment "
        "to evaluate in, else 0",
    ] = "auto"
    hold_out_last: Annotated[float | None, "the same, but the last episodes by time and not random ones"] = (
        None
    )
    on_divergence: Annotated[
        str, "of a seed whose values exceed its log's returns: continue, stop the run, or freeze the seed"
    ] = CONTINUE
    sampling: Annotated[str, "uniform, or five-buffers as in the released code"] = "uniform"
    data_per_seed: Annotated[str, "whole, or own: the log of the seed's own player"] = "whole"
    feed: Annotated[str, "where the data is kept: device, packed (on it), memory, compressed, or auto"] = (
        "auto"
    )
    memory_gib: Annotated[float | None, "memory for decoded frames; none: half of what this run may use"] = (
        None
    )
    checkpoint_seconds: Annotated[float, "seconds between checkpoints"] = 120.0
    keep_policies: Annotated[float, "GiB for the policies of the evaluations; 0: none is kept"] = 2.0
    loggers: Annotated[str, "of the figures: jsonl, tensorboard, wandb, mlflow, trackio, module:Name"] = USUAL
    unit: ClassVar[str] = "gradient step"

    def __post_init__(self):
        counts = ("steps", "evaluate_every", "episodes", "evaluation_steps", "batch", "n_step")
        demand(self, counts, lambda n: isinstance(n, int) and n >= 1, "it must be a whole number above 0")
        check_length(self.evaluation_steps)
        demand(self, ("n_step",), lambda n: n <= MOST_STEPS_AHEAD, f"it must be at most {MOST_STEPS_AHEAD}")
        demand(self, ("epsilon", "gamma"), lambda x: 0 <= x <= 1, "it must be between 0 and 1")
        demand(self, ("memory_gib",), lambda x: 0 < x < math.inf, "it must be above 0")
        demand(self, ("reward_scale",), is_scale, "it must be above 0, or auto")
        check_clipping(self)
        check_kind(self.observations)
        check_precision(self.precision)
        demand(self, ("hold_out",), lambda x: x == AUTO or 0 <= x < 1, "it must be at least 0 and below 1")
        demand(self, ("hold_out_last",), lambda x: 0 < x < 1, "it must be above 0 and below 1")
        if self.hold_out_last and self.hold_out not in (AUTO, 0):
            raise UsageError("hold_out is of random episodes and hold_out_last of the last: choose one")
        demand(self, ("checkpoint_seconds", "keep_policies"), lambda x: x >= 0, "it must be at least 0")
        if self.sampling not in SAMPLERS:
            raise UsageError(f'no sampling "{self.sampling}": {did_you_mean(self.sampling, SAMPLERS)}')
        for name, known in (("data_per_seed", LOGS), ("on_divergence", RESPONSES)):
            if (value := getattr(self, name)) not in known:
                raise UsageError(f'no {name} "{value}": {did_you_mean(value, known)}')

    @property
    def evaluation_epsilon(self) -> float:
        return self.epsilon

    def evaluates(self, step: int) -> bool:
        """Is an evaluation due at this gradient step?"""
        return is_due(step, every=self.evaluate_every, steps=self.steps)
