"""What "auto" becomes in a training on a dataset: the log decides."""

import math
from dataclasses import replace
from typing import Any

from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.training.automatic import AUTO, clipping, is_own, scaling
from optimist.training.offline_settings import Training
from optimist.training.rewards import outlier, suggested_limit, suggested_scale
from optimist.training.seed_logs import SeedLogs

FOLLOWING = ("clip_rewards", "reward_scale", "observations", "huber_limit", "target_limit", "hold_out")


def following(agent: Agent, training: Training) -> list[str]:
    """The settings that are "auto"."""
    return [name for name in FOLLOWING if AUTO in (getattr(agent, name, None), getattr(training, name, None))]


def settled_run(
    agent: Agent, training: Training, data: SeedLogs, dataset: Dataset, environment: str | None
) -> tuple[Agent, Training]:
    """The agent and its training with every "auto" replaced by its value for this dataset. `data` are the
    parts of it that the seeds learn from."""
    clip, scale, kind = training.clip_rewards, training.reward_scale, training.observations
    if clip == AUTO:
        clip = clipping(dataset.provenance, environment)
    foreign = clip is None and not is_own(dataset.provenance)
    odd = outlier(data.logs) if foreign and training.clip_rewards == AUTO else None
    limit = odd.limit if odd else math.inf
    if scale == AUTO:
        scale = suggested_scale(data.logs, training.gamma, agent, limit)[0] if foreign else 1.0
    if odd:
        clip = float(f"{limit * float(scale):.6g}")
    if kind == AUTO:
        kind = scaling(dataset.spec, dataset.provenance)
    training = replace(training, clip_rewards=clip, reward_scale=scale, observations=kind)
    changes: dict[str, Any] = {}
    if getattr(agent, "huber_limit", None) == AUTO:
        changes["huber_limit"] = suggested_limit(data.logs, float(scale), limit) if foreign else 1.0
    if getattr(agent, "target_limit", None) == AUTO:
        largest = max(each.largest for each in data.logged_values(training))
        changes["target_limit"] = largest or None  # a log without rewards has none
    return replace(agent, **changes), training
