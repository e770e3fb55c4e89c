"""JSON and TOML from files that anybody may have written: whatever is wrong with a text is a ValueError."""

import json
import tomllib
from typing import Any

MOST_NESTED = 64  # levels; our own files have fewer than ten, and functions that call themselves need few


def json_value(text: str | bytes) -> Any:
    """The value of a JSON text."""
    return _shallow(json.loads, text)


def toml_table(text: str) -> dict[str, Any]:
    """The table of a TOML text."""
    return _shallow(tomllib.loads, text)


def _shallow(parse: Any, text: str | bytes) -> Any:
    try:
        value = parse(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [value]
    for _ in range(MOST_NESTED):
        level = [inside for each in level for inside in _contents(each)]
        if not level:
            return value
    raise ValueError("it is nested too deeply")


def _contents(value: Any) -> list:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return []
    return [each for each in value if isinstance(each, dict | list)]
