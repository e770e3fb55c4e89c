"""The table of `optimist data info`."""

from collections.abc import Mapping, Sequence
from typing import Any

from optimist.errors import in_one_line, some_of
from optimist.studies.sheet import Sheet, in_words, listed

SKIPPED = ("provenance",)  # too long for a terminal; --json has it
LONG = ("action_names", "action_frequency")  # one entry per action, of which there may be thousands


def card_table(card: Mapping, title: str) -> Sheet:
    """The facts about a dataset, one per line."""
    known = {**card, "return_per_tenth": _tenths(card.get("return_per_tenth") or [])}
    rows = [
        [name.replace("_", " "), _briefly(value) if name in LONG else in_words(value)]
        for name, value in known.items()
        if name not in SKIPPED and value is not None
    ]
    origin = card.get("provenance", {}).get("environment")
    return Sheet(title, ("", ""), [*rows, *([["environment", origin]] if origin else [])])


def _tenths(returns: Sequence[float | None]) -> str | None:
    """The mean return of each tenth; None if fewer than two tenths have one, which shows no course."""
    missing = sum(value is None for value in returns)
    if len(returns) - missing < 2:
        return None
    shown = listed(["-" if value is None else in_words(value) for value in returns])
    return f"{shown} (-: no episode ended there)" if missing else shown


def _briefly(values: Sequence[Any]) -> str:
    """The first of many names or numbers; names as they are, without commas in numbers."""
    return some_of([in_words(v) if isinstance(v, float) else in_one_line(v, 40) for v in values], 20)
