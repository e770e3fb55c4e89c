"""Successive halving: a few real episodes for the candidates that are best offline."""

import math
from collections.abc import Callable, Sequence

import numpy as np

Play = Callable[[int, int, int], Sequence[float]]  # (candidate, episodes, round) -> their returns


def rounds_of(budget: int, candidates: int) -> list[tuple[int, int]]:
    """(candidates, episodes of each) in every round: half of the candidates stay after each, and every round
    gets an equal share of the budget (Karnin et al. 2013, algorithm 1), the last one also the rest."""
    rounds = max(1, int(math.log2(candidates))) if candidates > 1 else 1
    while rounds > 1 and rounds * 2**rounds > budget:
        rounds -= 1
    field = min(candidates, 2**rounds, budget)
    plan = [(max(1, field >> done), budget // rounds // max(1, field >> done)) for done in range(rounds)]
    left, (last, episodes) = budget - sum(field * each for field, each in plan), plan[-1]
    return [*plan[:-1], (last, episodes + left // last)]


def halved(ranking: Sequence[int], budget: int, play: Play) -> tuple[list[int], dict[int, list[float]]]:
    """The ranking with its head reordered by play, and the returns of every candidate that played."""
    returns = dict[int, list[float]]()
    order = list(ranking)
    for number, (field, episodes) in enumerate(rounds_of(budget, len(order))):
        for candidate in order[:field]:
            returns.setdefault(candidate, []).extend(play(candidate, episodes, number))
        head = sorted(order[:field], key=lambda candidate: -np.mean(returns[candidate]))  # a stable sort
        order[:field] = head
    return order, returns
