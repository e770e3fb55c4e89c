"""A value that a user gave: whether it fits a field, and records with some fields changed."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from optimist.data.transition import LARGEST
from optimist.errors import UsageError, did_you_mean, in_one_line

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}
LISTS = ("hidden", "vae_hidden", "loggers")  # may be a list instead of text with commas
PLURALS = {int: "whole numbers", float: "numbers", bool: "truth values", str: "texts"}


def fits(value: Any, kind: Any) -> bool:
    """Is the value of this kind? Whole numbers are numbers, and truth values are neither. Every value fits a
    kind that files cannot hold."""
    kind = _plain(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin in (list, tuple):
        return isinstance(value, (list, tuple)) and all(fits(each, parts[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, parts[1]) for each in value.values())
    if isinstance(value, int) and kind in (int, float):
        return not isinstance(value, bool) and abs(value) < LARGEST
    if is_dataclass(kind) and isinstance(value, str):
        return fits(value, fields(kind)[0].type)  # network = "mlp" is its torso
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def in_words(kind: Any) -> str:
    """The kind for a message: "a number or none"."""
    kind = _plain(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(in_words, parts))
    if origin is Literal:
        return " or ".join(map(str, parts))
    if origin in (list, tuple):
        return f"a list of {PLURALS.get(parts[0], 'tables')}"
    if origin is dict:
        return f"a table of {PLURALS.get(parts[1], 'tables')}"
    return WORDS.get(kind, "a table")


def may_be_none(kind: Any) -> bool:
    """May the setting be none, which a file writes as text? Not if all text has a meaning of its own."""
    return fits(None, kind) and not fits("none", kind)


def takes_fractions(kind: Any) -> bool:
    """Is it a number, and not a kind that every value fits?"""
    return fits(0.5, kind) and not fits(object(), kind)


def demand(record, names: tuple[str, ...], holds: Callable[[Any], bool], rule: str) -> None:
    """Raise UsageError for the first of these fields that is not None and breaks the rule."""
    for name in names:
        value = getattr(record, name)
        if value is not None and not holds(value):
            raise UsageError(f"{name} is {value}: {rule}")


def _plain(kind: Any) -> Any:
    """The kind without its help."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def names_of(record: Any) -> list[str]:
    return [field.name for field in fields(record)]


def field_names(record: Any, prefix: str = "") -> list[str]:
    """Every field; a field of a nested record has a dot: "optimizer.epsilon"."""
    found = []
    for name in names_of(record):
        value = getattr(record, name)
        inside = field_names(value, f"{prefix}{name}.") if is_dataclass(value) else [f"{prefix}{name}"]
        found += inside
    return found


def with_values(record: Any, values: Mapping[str, Any], place: str) -> Any:
    """The record with some fields changed; a dot or a table reaches a field of a nested record."""
    changes: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        first, dot, rest = name.partition(".")
        if first not in (known := names_of(record)):
            raise UsageError(f'{place}: there is no setting "{name}": {did_you_mean(first, known)}')
        if dot:
            inside.setdefault(first, {})[rest] = value
        elif isinstance(value, Mapping):  # a table of a TOML file: network = { torso = "mlp" }
            inside.setdefault(first, {}).update(value)
        else:
            changes[first] = _fitting(record, first, value, place)
    for first, within in inside.items():
        if not is_dataclass(changes.get(first, getattr(record, first))):
            raise UsageError(f'{place}: "{first}" is a single value: there are no settings inside it')
        changes[first] = with_values(changes.get(first, getattr(record, first)), within, place)
    return replace(record, **changes)  # all at once: 16 columns on 16 networks are valid only together


def _fitting(record: Any, name: str, value: Any, place: str) -> Any:
    """The value of a field, None for "none", 2.0 for 2 and 1000 for 1e3 as on the command line; UsageError if
    a number, a text or a list cannot be its value."""
    value = value.item() if isinstance(value, np.generic) else value
    field = type(record).__dataclass_fields__[name]
    if name in LISTS and isinstance(value, (list, tuple)):
        return value
    if value == "none" and may_be_none(field.type):
        return None
    if name in LISTS and type(value) is int:  # one width, as in --network.hidden 8
        return str(value)
    if type(value) is float and value.is_integer() and not fits(value, field.type):
        value = int(value)
    plain = value is None or isinstance(value, (bool, int, float, str, list, tuple))
    if plain and not fits(value, field.type):
        raise UsageError(f"{place}: {name} is {in_one_line(repr(value))}, not {in_words(field.type)}")
    return float(value) if type(value) is int and takes_fractions(field.type) else value
