"""Options from frozen dataclasses: each field is an option, and `Annotated[int, "the help"]` is its help.

The fields of the package's own classes are in `index.json`, so that help and errors need not import JAX.
`python -m optimist.cli.index` rewrites it; a test compares it with the classes.
"""

import argparse
import dataclasses
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from optimist.cli.options import number, numbers, whole_number, yes_or_no
from optimist.errors import UsageError

READERS: dict[str, Callable[[str], Any]] = {
    "int": whole_number,
    "number": number,
    "numbers": numbers,
    "yes|no": yes_or_no,
    "name": str,
}
KINDS = {int: "int", float: "number", bool: "yes|no", tuple[float, ...]: "numbers"}  # all others are names


class Setting(NamedTuple):
    """One option: the kind of its value, its help, and its default."""

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
            found[name] = Setting(_kind(field.type), _help(type(record), field.name), value)
    return found


def _kind(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        parts = get_args(kind)
        plain = next(part for part in parts if part is not type(None) and get_origin(part) is not Literal)
        words = ["none"] if type(None) in parts else []
        words += [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        return "|".join([KINDS.get(plain, "name"), *words])
    return KINDS.get(kind, "name")


def _help(record: type, name: str) -> str:
    """The help of a field, inherited: a subclass that changes a default need not repeat it."""
    for cls in record.__mro__:
        kind = cls.__dict__.get("__annotations__", {}).get(name)
        if get_origin(kind) is Annotated:
            return str(get_args(kind)[1])
    return ""


def add_settings(
    group: argparse._ActionsContainer,
    settings: Mapping[str, Setting],
    place: str,
    *,
    others: Mapping[str, Mapping[str, Any]] | None = None,
    hidden: bool = False,
) -> None:
    """Add an option for each setting; `given` returns those that the command line sets.

    `others` are the defaults by recipe.
    """
    for name, setting in settings.items():
        option = f"--{name.replace('_', '-')}"
        if option in group._option_string_actions:
            if hidden:
                continue
            raise UsageError(f'the field "{name}" has the name of another option: rename it')
        values = {recipe: each.get(name, setting.default) for recipe, each in (others or {}).items()}
        text = f"{setting.help} [{_defaults(setting.default, values)}]".replace("%", "%%").strip()
        group.add_argument(
            option,
            dest=f"{place}:{name}",
            type=reader(setting.kind),
            default=argparse.SUPPRESS,
            metavar=setting.kind,
            help=argparse.SUPPRESS if hidden else text,
        )


def given(options: argparse.Namespace, place: str) -> dict[str, Any]:
    """The settings that the command line sets."""
    values: Iterator[tuple[str, Any]] = iter(vars(options).items())
    return {name.partition(":")[2]: value for name, value in values if name.startswith(f"{place}:")}


def reader(kind: str) -> Callable[[str], Any]:
    plain = next(name for name in READERS if kind == name or kind.startswith(f"{name}|"))
    words = kind.removeprefix(plain).split("|")[1:]

    def value(text: str) -> Any:
        word = text.lower()
        return READERS[plain](text) if word not in words else None if word == "none" else word

    return value


def _defaults(value: Any, by_recipe: Mapping[str, Any]) -> str:
    """One value, or one for each recipe if they differ."""
    texts = {recipe: shown(value) for recipe, value in by_recipe.items()}
    if len(set(texts.values())) < 2:
        return next(iter(texts.values()), shown(value))
    return ", ".join(f"{recipe}: {text}" for recipe, text in texts.items())


def shown(value: Any) -> str:
    """A value as it is written on the command line: 12_500_000, 5e-05, yes, none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return "none" if value is None else f"{value:_}" if isinstance(value, int) else str(value)


def union(parts: Iterable[Mapping[str, Setting]]) -> dict[str, Setting]:
    """The settings of all parts together."""
    return {name: setting for part in parts for name, setting in part.items()}
