"""Drift: how far a candidate's own values are above the returns in the log."""

import numpy as np

from optimist.data.views import View

BEYOND = 0.1  # share of the value that may lie after the end of a truncated episode


def complete_steps(view: View, gamma: float) -> np.ndarray:
    """The steps whose return-to-go is known, (n,): all steps of episodes that terminate, and steps so long
    before a time limit that the discount makes the rest negligible."""
    lengths = np.diff(view.offsets)
    left = np.repeat(view.offsets[1:], lengths) - np.arange(len(view))
    terminal = np.repeat(view.timeline.terminal[view.stops - 1], lengths)
    return terminal | (gamma**left <= BEYOND)


def overestimation(
    estimates: np.ndarray, returns: np.ndarray, complete: np.ndarray, logged_value: np.ndarray
) -> float:
    """The mean of value minus return-to-go over these steps; NaN for an agent without values, and for a log
    whose returns are not known."""
    if not complete.any() or not np.isfinite(logged_value).all():
        return float("nan")
    return float(np.mean(estimates[complete] - returns[complete]))
