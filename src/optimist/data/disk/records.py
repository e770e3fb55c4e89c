"""Records: JSON and TOML from files that anybody may have written; whatever is wrong is a ValueError.

`record` checks the types of a dataclass, `sealed` adds a hash and `unsealed` checks it.
"""

import hashlib
import json
import tomllib
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
MOST_NESTED = 64  # levels; our own files have fewer than ten, and functions that call themselves need few
LARGEST_NUMBER = 2**64  # past any count, key or seed
SEAL = "sha256"  # the key of the hash


def json_value(text: str | bytes) -> Any:
    """The value of a JSON text."""
    return _shallow(lambda whole: json.loads(whole, parse_int=_machine_number), text)


def toml_table(text: str) -> dict[str, Any]:
    """The table of a TOML text."""
    return _shallow(tomllib.loads, text)


def record(kind: type[T], value: Any) -> T:
    """The value as this dataclass, checked: "Expected `int`, got `str` - at `$.step`"."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        raise ValueError(str(problem)) from None


def sealed(content: dict[str, Any], indent: int | None = None) -> str:
    """The content as JSON with its hash. ValueError or TypeError for what JSON or UTF-8 cannot hold."""
    whole = {**content, SEAL: _hash_of(content)}
    text = json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=indent) + "\n"
    text.encode()  # raises for text that UTF-8 cannot encode
    return text


def unsealed(text: str | bytes) -> dict[str, Any]:
    """The content of a sealed text. ValueError if it is not what was sealed."""
    content = json_value(text)
    if not isinstance(content, dict):
        raise ValueError("it is no table")
    stated = content.pop(SEAL, None)
    if stated != _hash_of(content):
        raise ValueError("it is damaged or edited: its hash differs")
    return content


def _hash_of(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _machine_number(digits: str) -> int:
    number = int(digits)
    if abs(number) >= LARGEST_NUMBER:
        raise ValueError(f"a number of {len(digits)} digits")
    return number


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
