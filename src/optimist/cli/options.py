"""Command-line options out of frozen dataclasses: a field is an option, its comment is the help."""

import argparse
import dataclasses
import inspect
import math
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar, get_args

from optimist.errors import UsageError, did_you_mean

Record = TypeVar("Record")
MOST_SEEDS = 1000  # trained together


class Parser(argparse.ArgumentParser):
    """Complains in one line, with the word that was probably meant."""

    def __init__(self, prog: str, description: str, epilog: str | None = None):
        super().__init__(
            prog, description=description, epilog=epilog, allow_abbrev=False, formatter_class=HelpFormatter
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def options(self, arguments: list[str], later: frozenset[str] = frozenset()) -> argparse.Namespace:
        """Everything parsed, or a complaint about the first word that is not known.

        The options named in `later` are passed over with their values.
        """
        found, unknown = self.parse_known_intermixed_args(list(_without(arguments, later)))
        if unknown:
            word = unknown[0].split("=")[0]
            known = {name for action in self._actions for name in action.option_strings} | later
            kind = "option" if word.startswith("-") else "argument"
            hint = _closest(word, known) if kind == "option" else f"see {self.prog} --help"
            raise UsageError(f'{self.prog} has no {kind} "{word}": {hint}')
        return found


def _without(arguments: list[str], names: frozenset[str]) -> Iterator[str]:
    """The arguments less these options; each of them takes one value."""
    is_value = False
    for word in arguments:
        name, equals, _ = word.partition("=")
        if name in names:
            is_value = not equals
        elif not is_value or word.startswith("--"):
            is_value = False
            yield word
        else:
            is_value = False


def _closest(word: str, known: set[str]) -> str:
    """The option that was probably meant; --learning-rate, or --lr, means --optimizer.learning-rate."""
    return did_you_mean(word, {name for name in known if name.startswith("--")})


class HelpFormatter(argparse.HelpFormatter):
    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=34, width=110)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Each line stays a line."""
        return "\n".join(textwrap.fill(line, width) for line in text.splitlines())


def add_fields(parser: argparse._ActionsContainer, record: Any, prefix: str = "") -> None:
    """One option per field, named after it, with the record's value as the default."""
    comments = _comments(type(record))
    for field in dataclasses.fields(record):
        value, name = getattr(record, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            add_fields(parser, value, f"{name}.")
            continue
        shown = "none" if value is None else value
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            type=_reader(field.type),
            default=value,
            metavar=_type_name(field.type),
            help=f"{comments.get(field.name, '')} [{shown}]".replace("%", "%%").strip(),
        )


def option_names(record: Any, prefix: str = "") -> frozenset[str]:
    """The options that `add_fields` would add."""
    parser = argparse.ArgumentParser(add_help=False)
    add_fields(parser, record, prefix)
    return frozenset(name for action in parser._actions for name in action.option_strings)


def with_options(record: Record, options: argparse.Namespace, prefix: str = "") -> Record:
    """The record with the values that were given."""
    values = {}
    for field in dataclasses.fields(record):  # type: ignore[arg-type]
        value, name = getattr(record, field.name), f"{prefix}{field.name}"
        nested = dataclasses.is_dataclass(value)
        values[field.name] = with_options(value, options, f"{name}.") if nested else getattr(options, name)
    return dataclasses.replace(record, **values)  # type: ignore[type-var]


def seeds(text: str) -> tuple[int, ...]:
    """ "0,1,2" or "0-4" as numbers."""
    first, dash, last = text.partition("-")
    try:
        if dash and int(last) - int(first) >= MOST_SEEDS:
            raise argparse.ArgumentTypeError(f'"{text}" are too many seeds: at most {MOST_SEEDS} at once')
        return tuple(range(int(first), int(last) + 1)) if dash else tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" are no seeds: write 0,1,2 or 0-4') from None


def _reader(kind: Any):
    optional = isinstance(kind, types.UnionType)
    readers: dict[Any, Callable] = {int: whole_number, float: number, bool: _yes_or_no, str: str}
    plain = next(k for k in get_args(kind) if k is not type(None)) if optional else kind
    read = readers[plain]

    def value(text: str):
        return None if optional and text.lower() == "none" else read(text)

    value.__name__ = _type_name(kind)
    return value


def whole_number(text: str) -> int:
    """An integer, 1e6 and 1_000_000 included."""
    try:
        return int(text)
    except ValueError:
        value = number(text)
    if value != int(value):
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number')
    return int(value)


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'"{text}" is not a number')
    return value


def _yes_or_no(text: str) -> bool:
    words = {"yes": True, "true": True, "no": False, "false": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f'"{text}" is neither yes nor no')
    return words[text.lower()]


def _type_name(kind: Any) -> str:
    if isinstance(kind, types.UnionType):
        return "|".join("none" if k is type(None) else _type_name(k) for k in get_args(kind))
    return {int: "int", float: "number", bool: "yes|no", str: "name"}.get(kind, str(kind))


def _comments(record: type) -> dict[str, str]:
    """The comment behind each field, read off the source: a field is documented where it is defined."""
    found: dict[str, str] = {}
    for cls in reversed(record.__mro__[:-1]):
        try:
            source = inspect.getsource(cls)
        except (OSError, TypeError):
            continue
        found |= re.findall(r"^    (\w+): [^#\n]*#\s*(.+)$", source, re.MULTILINE)
    return found
