"""Losses as plain loops over their definitions, to compare with."""

import math


def huber_by_definition(error: float, delta: float) -> float:
    if abs(error) <= delta:
        return 0.5 * error**2
    return delta * (abs(error) - 0.5 * delta)


def quantile_huber_by_loops(quantiles, targets) -> float:
    """Dabney et al. 2018, eq. 10 in algorithm 1: sum over i of the mean over j of |tau_i - [u < 0]| L(u)."""
    total = 0.0
    for i, quantile in enumerate(quantiles):
        tau = (2 * i + 1) / (2 * len(quantiles))
        for target in targets:
            error = target - quantile
            below = 1.0 if error < 0 else 0.0
            total += abs(tau - below) * huber_by_definition(error, 1.0) / len(targets)
    return total


def projection_by_loops(support, probabilities, atoms) -> list[float]:
    """Bellemare et al. 2017, algorithm 1: a point gives its mass to the atoms below and above it.

    A point on an atom has the same one below and above, and gives it all; the printed algorithm loses it.
    """
    projected, last = [0.0] * len(atoms), len(atoms) - 1
    for point, mass in zip(support, probabilities, strict=True):
        place = min(max((point - atoms[0]) / (atoms[-1] - atoms[0]) * last, 0), last)
        lower, upper = math.floor(place), math.ceil(place)
        if lower == upper:
            projected[lower] += mass
        else:
            projected[lower] += mass * (upper - place)
            projected[upper] += mass * (place - lower)
    return projected
