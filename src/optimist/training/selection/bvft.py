"""Batch value-function tournament: candidates' own values, compared in pairs on held-out steps."""

from collections.abc import Sequence

import numpy as np

RESOLUTIONS = (0.02, 0.05, 0.1, 0.2)  # widths of a cell, relative to the range of all values


def tournament(values: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> np.ndarray:
    """The loss of each candidate, (C,): the largest over its rivals, of the resolution at which that is
    smallest (Zhang and Jiang 2021, algorithm 1). `values` are Q(s, a) of the same steps by each candidate,
    `targets` r + discount * V(s'). NaN for a candidate that has no values."""
    known = [number for number, each in enumerate(values) if np.isfinite(each).all()]
    found = np.full(len(values), np.nan)
    if not known:
        return found
    low = min(values[number].min() for number in known)
    high = max(values[number].max() for number in known)
    losses = []
    for resolution in RESOLUTIONS:
        width = max(resolution * (high - low), 1e-12)
        cells = {number: ((values[number] - low) / width).astype(np.int64) for number in known}
        losses.append([max(_loss(values[i], targets[i], cells[i], cells[j]) for j in known) for i in known])
    found[known] = np.min(losses, axis=0)
    return found


def _loss(values: np.ndarray, targets: np.ndarray, cells: np.ndarray, rivals: np.ndarray) -> float:
    """The distance between Q and the projection of its target: the mean target of all steps for which both
    candidates have similar values."""
    count = int(rivals.max()) + 1
    cell = cells * count + rivals
    size = np.bincount(cell)
    projected = np.bincount(cell, targets) / np.maximum(size, 1)
    return float(np.sqrt(np.mean((values - projected[cell]) ** 2)))
