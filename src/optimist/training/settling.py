"""What "auto" becomes in a training on a dataset: the log decides, or the run that goes on."""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.training.automatic import AUTO, clipping, is_own, scaling, settled
from optimist.training.offline_settings import Training
from optimist.training.rewards import suggested_limit, suggested_scale
from optimist.training.seed_logs import SeedLogs

log = logging.getLogger("optimist")


def settled_run(
    agent: Agent,
    training: Training,
    data: SeedLogs,
    dataset: Dataset,
    environment: str | None,
    before: dict,
    out: str | Path,
) -> tuple[Agent, Training]:
    """The agent and its training without "auto". `data` are the parts of the dataset that the seeds learn
    from; `before` is the configuration of the run that continues in `out`."""
    older = bool(before) and "huber_limit" not in before.get("agent", {})
    scale = partial(suggested_scale, data.logs, training.gamma, agent)
    if older and hasattr(agent, "huber_limit"):  # its scale and its limit belong together
        scale = partial(before.get("training", {}).get, "reward_scale", 1.0)
    elif before and hasattr(agent, "largest_value"):  # its scale followed another rule before
        scale = partial(_kept_scale, before, scale, out)
    training = settled_for(training, dataset, environment, before, out, scale)
    if getattr(agent, "huber_limit", None) == AUTO:
        as_published = training.clip_rewards is not None or is_own(dataset.provenance)
        agent = _counting(agent, training, data, as_published, out if older else None)
    if getattr(agent, "target_limit", None) == AUTO:
        agent = _limited(agent, training, data)
    return agent, training


def settled_for(
    training: Training,
    dataset: Dataset,
    environment: str | None,
    before: dict,
    out: str | Path,
    scale: Callable[[], float] = lambda: 1.0,
) -> Training:
    """The training with every "auto" replaced by its value for this dataset; `before` is the configuration of
    the run that continues in `out`. `scale` finds the scale for rewards that are not clipped, of a log that
    is not our own."""
    clip = clipping(dataset.provenance, environment)
    clipped = clip if training.clip_rewards == AUTO else training.clip_rewards
    as_logged = training.reward_scale != AUTO or clipped is not None or is_own(dataset.provenance)
    found = {
        "clip_rewards": clip,
        "observations": scaling(dataset.spec, dataset.provenance),
        "reward_scale": 1.0 if as_logged else scale(),
    }
    return settled(training, found, before.get("training"), out)


def _kept_scale(before: dict, suggested: Callable[[], float], out: str | Path) -> float:
    """The scale of rewards of the run in the folder; the log says if it is not the one that is suggested."""
    kept, now = before.get("training", {}).get("reward_scale", 1.0), suggested()
    if kept != now:
        log.warning("%s continues with reward_scale %g, as it began (the default is now %g)", out, kept, now)
    return kept


def _counting(
    agent: Agent, training: Training, data: SeedLogs, as_published: bool, older: str | Path | None
) -> Agent:
    """The agent with the published limit of Huber's loss, or one at which every reward of the logs counts
    whole. `older` is the folder of a run that had the published one."""
    scale: Any = training.reward_scale  # settled: a number
    limit = 1.0 if as_published else suggested_limit(data.logs, scale)
    if older and limit != 1:
        line = "%s was begun by an older version: it continues with huber_limit 1 (the default is now %g)"
        log.warning(line, older, limit)
    changes: dict[str, Any] = {"huber_limit": 1.0 if older else limit}
    return replace(agent, **changes)


def _limited(agent: Agent, training: Training, data: SeedLogs) -> Agent:
    """The agent whose targets are clipped to the largest return-to-go of all logs."""
    largest = max(each.largest for each in data.logged_values(training))
    limit: dict[str, Any] = {"target_limit": largest or None}  # a log without rewards has none
    return replace(agent, **limit)
