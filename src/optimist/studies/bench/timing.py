"""Rates of several kinds of work, timed in turns, so that other load affects all of them alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple


class Subject(NamedTuple):
    """What a rate measures."""

    part: str  # learner, data or play
    name: str  # the agent, the feed, or the kind of play and its environment
    network: str
    batch: int
    seeds: int
    unit: str


class Gauge(NamedTuple):
    """A kind of work whose rate limits others. Each call of `do` does some of it and returns the amount."""

    name: str
    do: Callable[[], int]


class Work(NamedTuple):
    """Work that is timed. Each call of `do` returns the units done; `needs` is a gauge's work per unit."""

    subject: Subject
    do: Callable[[], int]
    needs: Sequence[tuple[Gauge, float]]


@dataclass(frozen=True)
class Timing:
    """How long each work is timed."""

    rounds: int = 5
    seconds: float = 1.0  # shortest duration of one work in one round

    def rates(self, works: Sequence[Callable[[], int]]) -> list[list[float]]:
        """The rates of all works in every round; a first call, which compiles, is not timed."""
        for do in works:
            do()
        return [[self._rate(do) for do in works] for _ in range(self.rounds)]

    def _rate(self, do: Callable[[], int]) -> float:
        done, passed, start = 0, 0.0, time.perf_counter()
        while passed < self.seconds or not done:
            done += do()
            passed = time.perf_counter() - start
        return done / passed


def middle(rounds: Sequence[Sequence[float]], place: int) -> float:
    """The median rate of one work."""
    return median(rates[place] for rates in rounds)


def best(rounds: Sequence[Sequence[float]], place: int) -> float:
    """The rate of one work in its least disturbed round."""
    return max(rates[place] for rates in rounds)


def ratio(rounds: Sequence[Sequence[float]], place: int, other: int) -> float:
    """The median over the rounds of the ratio of two rates of the same round."""
    return median(rates[place] / rates[other] for rates in rounds)
