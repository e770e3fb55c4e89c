"""The figures that show how training goes without an environment, by their names in the logs."""

import math
from collections.abc import Sequence

HELD_OUT = "held_out_loss_"
WORDS = {"value_ratio": "value ratio", "agreement": "agreement", "value_drift": "drift"}
SHARES = ("agreement", "value_drift")  # are shown in percent


def estimators_in(row: dict) -> list[str]:
    """The names of the estimators in a row of figures, those on held-out data first."""
    return [name for name in row if name.startswith(HELD_OUT)] + [name for name in WORDS if name in row]


def title(name: str) -> str:
    """'held-out loss q', 'value ratio'."""
    return WORDS.get(name) or f"held-out loss {name.removeprefix(HELD_OUT)}"


def shown(name: str, value: float) -> str:
    if name in SHARES:
        return f"{100 * value:.3g}%"
    return f"{value:.3g}" if math.isfinite(value) else str(value)


def in_words(rows: Sequence[dict]) -> str:
    """'held-out loss q 0.0123, value ratio 0.93, agreement 81%': means over the seeds that have a figure."""
    names = list(dict.fromkeys(name for row in rows for name in estimators_in(row)))
    found = []
    for name in names:
        values = [row[name] for row in rows if name in row]
        found.append(f"{title(name)} {shown(name, sum(values) / len(values))}")
    return ", ".join(found)
