"""Optimist: offline reinforcement learning from logged play."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; at run time each name is imported on first use
    from optimist import agents
    from optimist.api import collect, export, load, open, select, train
    from optimist.data import Dataset, Recorder, Spec, Transition
    from optimist.envs._recording import record

__version__ = "0.1.0"
__all__ = [
    "Dataset",
    "Recorder",
    "Spec",
    "Transition",
    "agents",
    "collect",
    "export",
    "load",
    "open",
    "record",
    "select",
    "train",
]
_HOMES = {
    **dict.fromkeys(("open", "load", "train", "collect", "select", "export"), "optimist.api"),
    **dict.fromkeys(("Dataset", "Recorder", "Spec", "Transition"), "optimist.data"),
    "record": "optimist.envs._recording",  # without JAX, which the user's own script may lack
}


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that `optimist --help` is fast."""
    if name == "agents":
        return importlib.import_module("optimist.agents")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module optimist has no attribute {name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
