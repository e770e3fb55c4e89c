"""A campaign: many cases of one kind of fault, each with its own random numbers, and what came of them."""

import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optimist.errors import OptimistError

FOLDER = Path(__file__).parents[2] / "runs" / "torture"  # ignored by git
SURVIVED, LOST, SILENT, EXECUTED, TRACEBACK = VERDICTS = (
    "survived",  # the same result, or one line that names the fault
    "lost",  # something that was reported as saved is gone
    "silent",  # another result, without a word
    "executed",  # code of a file ran
    "traceback",  # not one line
)


class Campaign(NamedTuple):
    """`case` gets random numbers and an empty folder, and returns a verdict, or None if nothing was wrong; an
    error of ours has to be one line, and any other exception is a traceback."""

    name: str
    cases: int
    case: Callable[[np.random.Generator, Path], str | None]

    @property
    def file(self) -> Path:
        """The verdicts by the numbers of cases, one JSON line each."""
        return FOLDER / ("".join(letter if letter.isalnum() else "-" for letter in self.name) + ".jsonl")

    def verdicts(self) -> dict[str, str]:
        """Those of earlier runs too."""
        lines = self.file.read_text("utf-8").splitlines(keepends=True) if self.file.exists() else []
        whole = [json.loads(line) for line in lines if line.endswith("\n")]  # a kill may cut off the last one
        return {number: verdict for line in whole for number, verdict in line.items()}


def run(campaigns: Iterable[Campaign], *, seconds: float, share: float = 1.0) -> None:
    """Do the cases that are not done, for at most so many seconds; `share` of each campaign's cases."""
    begun = time.monotonic()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for campaign in campaigns:
        done = campaign.verdicts()
        for number in range(max(1, round(campaign.cases * share))):
            if str(number) in done:
                continue
            if time.monotonic() - begun > seconds:
                print("the time is over: the same command continues")
                return
            with open(campaign.file, "a", encoding="utf-8") as stream:
                stream.write(json.dumps({str(number): verdict(campaign, number)}) + "\n")
        print(row(campaign), flush=True)


def verdict(campaign: Campaign, number: int) -> str:
    random = np.random.default_rng([number, *campaign.name.encode()])
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        try:
            verdict = campaign.case(random, Path(folder)) or SURVIVED
        except OptimistError as problem:
            verdict = SURVIVED if "\n" not in str(problem) else TRACEBACK
        except Exception:
            FOLDER.mkdir(parents=True, exist_ok=True)
            with open(FOLDER / "tracebacks.txt", "a", encoding="utf-8") as stream:
                stream.write(f"{campaign.name}, case {number}\n{traceback.format_exc()}\n")
            return TRACEBACK
    return EXECUTED if "evil" in sys.modules else verdict


def row(campaign: Campaign) -> str:
    counts = Counter(campaign.verdicts().values())
    numbers = " | ".join(f"{counts[each]:,}" for each in VERDICTS)
    return f"| {campaign.name} | {sum(counts.values()):,} | {numbers} |"


def table(campaigns: Iterable[Campaign]) -> str:
    head = f"| fault | tried | {' | '.join(VERDICTS)} |\n|---|{'---|' * 6}"
    return "\n".join([head, *map(row, campaigns)])


def failures(campaigns: Iterable[Campaign]) -> int:
    return sum(verdict != SURVIVED for each in campaigns for verdict in each.verdicts().values())
