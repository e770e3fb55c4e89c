"""Command-line options out of frozen dataclasses: a field is an option, its comment is the help."""

import argparse
import dataclasses
import inspect
import re
import types
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, get_args

from optimist.errors import UsageError, did_you_mean

Record = TypeVar("Record")


class Parser(argparse.ArgumentParser):
    """Complains in one line, with the word that was probably meant."""

    def __init__(self, prog: str, description: str, epilog: str | None = None):
        super().__init__(
            prog, description=description, epilog=epilog, allow_abbrev=False, formatter_class=HelpFormatter
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def options(self, arguments: list[str]) -> argparse.Namespace:
        """Everything parsed, or a complaint about the first word that is not known."""
        found, unknown = self.parse_known_args(arguments)
        if unknown:
            word = unknown[0].split("=")[0]
            known = [
                name for action in self._actions for name in action.option_strings if name.startswith("--")
            ]
            kind = "option" if word.startswith("-") else "argument"
            hint = did_you_mean(word, known) if kind == "option" else f"see {self.prog} --help"
            raise UsageError(f'{self.prog} has no {kind} "{word}": {hint}')
        return found


class HelpFormatter(argparse.HelpFormatter):
    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=34, width=110)


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
        return tuple(range(int(first), int(last) + 1)) if dash else tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" are no seeds: write 0,1,2 or 0-4') from None


def _reader(kind: Any):
    optional = isinstance(kind, types.UnionType)
    plain = next(k for k in get_args(kind) if k is not type(None)) if optional else kind
    readers: dict[Any, Callable] = {int: whole_number, float: float, bool: _yes_or_no, str: str}
    read = readers[plain]

    def value(text: str):
        return None if optional and text.lower() == "none" else read(text)

    value.__name__ = _type_name(kind)
    return value


def whole_number(text: str) -> int:
    """An integer, 1e6 and 1_000_000 included."""
    number = float(text.replace("_", ""))
    if number != int(number):
        raise ValueError(text)
    return int(number)


def _yes_or_no(text: str) -> bool:
    return {"yes": True, "true": True, "no": False, "false": False}[text.lower()]


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
