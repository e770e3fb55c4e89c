"""Kinds: whether a value that a user gave fits an annotation or a rule, and the annotation in plain words."""

from collections.abc import Callable
from dataclasses import InitVar, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from optimist.data.transition import LARGEST
from optimist.errors import UsageError

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}
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
    kind = kind.type if isinstance(kind, InitVar) else kind
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
