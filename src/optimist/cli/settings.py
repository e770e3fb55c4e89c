"""What may be set: the fields of records and the parameters of functions, and how their values are written.

`steps: Annotated[int, "gradient steps"] = 100` is a setting of the kind "int", with this help and default.
"""

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, Union, get_args, get_origin

from optimist.errors import UsageError

MOST_SEEDS = 1000  # in one run


class Setting(NamedTuple):
    """The kind of a value, its help, and its default."""

    kind: str  # a key of READERS, with "|none" if it may be None, and with other words that it may be
    help: str
    default: Any


def settings_of(record: Any, prefix: str = "") -> dict[str, Setting]:
    """The fields of a record by name; those of a nested record have a dot, as in optimizer.epsilon."""
    found: dict[str, Setting] = {}
    for field in dataclasses.fields(record):
        value, name = getattr(record, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            found |= settings_of(value, f"{name}.")
        else:
            found[name] = Setting(kind_of(field.type), _help(type(record), field.name), value)
    return found


def kind_of(annotation: Any) -> str:
    """The kind of value: "int", "number|none", "number|auto"."""
    members = _members(annotation)
    plain = next((each for each in members if each != "None" and "Literal" not in each), "")
    kind = KINDS.get("Path" if "Path" in members else plain, "name")
    return "|".join([kind, *(["none"] if "None" in members else []), *_words(annotation)])


def _members(annotation: Any) -> list[str]:
    """The names of the types of a union; a type may be a text, so that it need not be imported."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [name for part in get_args(annotation) for name in _members(part)]
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__.split(" | ")
    if get_origin(annotation) or not isinstance(annotation, type):
        return [str(annotation).rpartition("collections.abc.")[2]]
    return [annotation.__name__.removesuffix("Type")]


def _words(annotation: Any) -> list[str]:
    """The words that a value may be in place of a number."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    parts = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()
    return [word for part in parts if get_origin(part) is Literal for word in get_args(part)]


def _help(record: type, name: str) -> str:
    """The help of a field, inherited: a subclass that changes a default need not repeat it."""
    for cls in record.__mro__:
        kind = cls.__dict__.get("__annotations__", {}).get(name)
        if get_origin(kind) is Annotated:
            return str(get_args(kind)[1])
    return ""


def read(kind: str, text: str) -> Any:
    """The value of this kind that is written so; UsageError if there is none."""
    plain = next(name for name in READERS if kind == name or kind.startswith(f"{name}|"))
    words, word = kind.removeprefix(plain).split("|")[1:], text.lower()
    return READERS[plain](text) if word not in words else None if word == "none" else word


def shown(value: Any) -> str:
    """A value as it is written on the command line: 12_500_000, 5e-05, yes, none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return "none" if value is None else f"{value:_}" if isinstance(value, int) else str(value)


def default_in_words(value: Any, by_recipe: Mapping[str, Any]) -> str:
    """One value, or one for each recipe if they differ."""
    texts = {recipe: shown(value) for recipe, value in by_recipe.items()}
    if len(set(texts.values())) < 2:
        return next(iter(texts.values()), shown(value))
    return ", ".join(f"{recipe}: {text}" for recipe, text in texts.items())


def seeds(text: str) -> tuple[int, ...]:
    """ "0,1,2" or "0-4" as numbers."""
    first, dash, last = text.partition("-")
    try:
        if not dash:
            return tuple(map(int, text.split(",")))
        count = int(last) - int(first) + 1
    except ValueError:
        raise UsageError(f'"{text}" is not a list of seeds: write 0,1,2 or 0-4') from None
    if count > MOST_SEEDS:
        raise UsageError(f'"{text}" has too many seeds: at most {MOST_SEEDS} at once')
    if count < 1:
        raise UsageError(f'"{text}" counts down: write {last}-{first}')
    return tuple(range(int(first), int(last) + 1))


def whole_number(text: str) -> int:
    """An integer; 1e6 and 1_000_000 are accepted too."""
    try:
        return int(text)
    except ValueError:
        value = number(text)
    if value != int(value):
        raise UsageError(f'"{text}" is not a whole number')
    return int(value)


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f'"{text}" is not a number')
    return value


def numbers(text: str) -> float | tuple[float, ...]:
    """One number, or several with commas between them."""
    try:
        found = tuple(map(number, text.split(",")))
    except UsageError:
        raise UsageError(f'"{text}" is not a list of numbers: write one, or several as in -1,2.5') from None
    return found if len(found) > 1 else found[0]


def yes_or_no(text: str) -> bool:
    words = {"yes": True, "true": True, "no": False, "false": False}
    if text.lower() not in words:
        raise UsageError(f'"{text}" is neither yes nor no')
    return words[text.lower()]


def path(text: str) -> Path:
    if not text:  # pathlib would take it for the current folder
        raise UsageError("it is empty: name a path (a variable of the shell may not be set)")
    return Path(text)


READERS: dict[str, Callable[[str], Any]] = {
    "int": whole_number,
    "number": number,
    "numbers": numbers,
    "yes|no": yes_or_no,
    "seeds": seeds,
    "path": path,
    "names": str,
    "name": str,
}
KINDS = {  # by the name of a type, of a union's types the first or Path; all others are names
    "Path": "path",
    "Sequence[pathlib.Path]": "path",
    "Iterable[int]": "seeds",
    "Iterable[str]": "names",
    "tuple[float, ...]": "numbers",
    "float": "number",
    "int": "int",
    "bool": "yes|no",
}
