"""A campaign: many cases of one kind of fault, each with its own random numbers, and what came of them."""

import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torture.results import FOLDER, Results

SURVIVED, LOST, SILENT, EXECUTED, TRACEBACK = VERDICTS = (
    "survived",  # the same result, or one line that names the fault
    "lost",  # something that was reported as saved is gone
    "silent",  # another result, without a word
    "executed",  # code of a file ran
    "traceback",  # not one line
)


class Campaign(NamedTuple):
    """`case` gets random numbers and an empty folder, and returns a verdict; an exception is a traceback."""

    name: str
    cases: int
    case: Callable[[np.random.Generator, Path], str]


def run(campaigns: Iterable[Campaign], *, seconds: float, share: float = 1.0) -> None:
    """Do the cases that are not done, for at most so many seconds; `share` of each campaign's cases."""
    begun = time.monotonic()
    for campaign in campaigns:
        results = Results(_file(campaign))
        for number in range(max(1, round(campaign.cases * share))):
            if str(number) in results.known:
                continue
            if time.monotonic() - begun > seconds:
                print("the time is over: the same command continues")
                return
            results.add(str(number), verdict(campaign, number))
        print(row(campaign, results), flush=True)


def verdict(campaign: Campaign, number: int) -> str:
    random = np.random.default_rng([number, *campaign.name.encode()])
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        try:
            return campaign.case(random, Path(folder))
        except Exception:
            FOLDER.mkdir(parents=True, exist_ok=True)
            with open(FOLDER / "tracebacks.txt", "a", encoding="utf-8") as stream:
                stream.write(f"{campaign.name}, case {number}\n{traceback.format_exc()}\n")
            return TRACEBACK


def row(campaign: Campaign, results: Results) -> str:
    counts = Counter(results.known.values())
    numbers = " | ".join(f"{counts[each]:,}" for each in VERDICTS)
    return f"| {campaign.name} | {len(results.known):,} | {numbers} |"


def table(campaigns: Iterable[Campaign]) -> str:
    head = f"| fault | tried | {' | '.join(VERDICTS)} |\n|---|{'---|' * 6}"
    return "\n".join([head, *(row(each, Results(_file(each))) for each in campaigns)])


def failures(campaigns: Iterable[Campaign]) -> int:
    return sum(v != SURVIVED for each in campaigns for v in Results(_file(each)).known.values())


def _file(campaign: Campaign) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in campaign.name)
