"""The values of settings that are "auto": they follow from the data, its environment, or an older run."""

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from optimist import envs
from optimist.data.transition import Spec
from optimist.errors import UsageError

AUTO = "auto"
PAPERS = ("atari", "minatar", "minatar_jax")  # families of environments whose rewards the paper clips
IMPORTED = "dqn-replay"  # the format of the paper's own logs
FIRST_SETTING = "reward_scale"  # a run without it was begun by a version that had no "auto"
CLIPPED = "rewards are clipped to +- this; none: as they are; auto: 1 for Atari and MinAtar, else none"
SCALED = (
    "rewards are multiplied by this before they are clipped; auto: 1 unless they are too large for the agent"
)
Settings = TypeVar("Settings", bound=Any)
log = logging.getLogger("optimist")


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


def values(asked: Mapping[str, Any], found: Mapping[str, Any], before: Any = None) -> dict[str, Any]:
    """The value of each setting that is "auto" in `asked`: the one `found`. The settings `before` are those
    of the run in the folder, if there is one: a run of an older version keeps what it began with."""
    if isinstance(before, dict) and FIRST_SETTING not in before:
        found = {
            **found,
            "clip_rewards": before.get("clip_rewards"),
            "observations": "none",
            "reward_scale": 1.0,
        }
    return {name: value for name, value in found.items() if asked.get(name) == AUTO}


def settled(settings: Settings, found: Mapping[str, Any], before: Any, out: str | Path) -> Settings:
    """The settings of a Training or a Collection without "auto"; the log says where an older run decides."""
    asked = {name: getattr(settings, name) for name in found}
    chosen = values(asked, found, before)
    for name, value in chosen.items():
        if value != found[name]:
            line = "%s was begun by an older version: it continues with %s %s (the default is now %s)"
            log.warning(line, out, name, _shown(value), _shown(found[name]))
    return replace(settings, **chosen)


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
