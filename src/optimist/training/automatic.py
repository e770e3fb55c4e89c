"""The values of settings that are "auto": they follow from the data or its environment."""

import math
from collections.abc import Mapping
from typing import Any

from optimist import envs
from optimist.data.transition import Spec
from optimist.errors import UsageError

AUTO = "auto"
PAPERS = ("atari", "minatar", "minatar_jax")  # families of environments whose rewards the paper clips
IMPORTED = "dqn-replay"  # the format of the paper's own logs
CLIPPED = (
    "rewards are clipped to +- this; none: as they are; auto: 1 for Atari and MinAtar, else none, except for "
    "single outliers of another's log"
)
SCALED = (
    "rewards are multiplied by this before they are clipped; auto: in another's log what gives values the "
    "size at which the agent learns best, else 1"
)


def is_own(provenance: Mapping[str, Any]) -> bool:
    """Was this log recorded by `optimist collect`, or imported from the DQN Replay Dataset?"""
    return "collection" in provenance or provenance.get("format") == IMPORTED


def clipping(provenance: Mapping[str, Any], environment: str | None = None) -> float | None:
    """The limit of rewards: 1 for the paper's environments, none for all others."""
    known = provenance.get("environment") or environment
    if not known:
        return 1.0 if provenance.get("format") == IMPORTED else None
    return 1.0 if envs.base_name(str(known)).partition("/")[0] in PAPERS else None


def scaling(spec: Spec, provenance: Mapping[str, Any]) -> str:
    """How observations are scaled: vectors of somebody else's log are standardised, others are not."""
    return "standard" if takes_scaling(spec) and not is_own(provenance) else "none"


def takes_scaling(spec: Spec) -> bool:
    return len(spec.frame_shape) == 1 and spec.frame_dtype == "float32"


def check_clipping(settings: Any) -> None:
    """Raise UsageError for a limit of rewards that is no number above 0; the word "none" becomes None, which
    a TOML file cannot hold."""
    if settings.clip_rewards == "none":
        object.__setattr__(settings, "clip_rewards", None)
    limit = settings.clip_rewards
    if limit in (None, AUTO) or (isinstance(limit, (int, float)) and 0 < limit < math.inf):
        return
    raise UsageError(f"clip_rewards is {limit}: it must be above 0, none, or auto")


def is_scale(scale: Any) -> bool:
    return scale == AUTO or (isinstance(scale, (int, float)) and 0 < scale < math.inf)
