"""Optimist: offline reinforcement learning from logged play."""

import importlib

__version__ = "0.1.0"
_PLACES = {
    **dict.fromkeys(("open", "load", "train", "collect"), "optimist.api"),
    **dict.fromkeys(("Dataset", "Recorder", "Spec", "Transition"), "optimist.data"),
}
__all__ = ["agents", *_PLACES]


def __getattr__(name: str):
    """Imported when first asked for, so that `optimist --help` answers at once."""
    if name == "agents":
        return importlib.import_module("optimist.agents")
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module optimist has no attribute {name}")
