"""Numbers that a user gave."""

from typing import Any

import numpy as np

from optimist.errors import UsageError, in_one_line

LARGEST = 2**63  # nobody means a whole number beyond it, and arithmetic with floats would overflow


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """The whole number that this value is, 1000 for 1e3; UsageError for any other value, or a smaller one."""
    value = value.item() if isinstance(value, np.generic) else value
    if not _is_number(value) or not abs(value) < LARGEST or value % 1:  # NaN is not below anything
        raise UsageError(f"{name} is {in_one_line(repr(value))}, not a whole number")
    if least is not None and value < least:
        raise UsageError(f"{name} is {value:g}: it must be at least {least}")
    return int(value)


def number(name: str, value: Any) -> float:
    """The float that this value is; UsageError for what is no number, such as text."""
    value = value.item() if isinstance(value, np.generic) else value
    if not _is_number(value):
        raise UsageError(f"{name} is {in_one_line(repr(value))}, not a number")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
