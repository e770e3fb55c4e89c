"""The words of a command: its arguments and options, made from the signature of a function, and their values.

A parameter whose annotation has a help is a word: positional ones are arguments, keyword-only ones are
options, and one that is False is an option without a value. A parameter that is a record is a group of
options, one for each field: `steps: Annotated[int, "gradient steps"] = 100` is a setting of the kind "int",
with this help and default.
"""

import dataclasses
import math
import re
import shutil
import textwrap
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, Union, get_args, get_origin

from optimist.errors import UsageError, did_you_mean

NEGATIVE = re.compile(r"-\.?\d")  # how a number, or a list of them, begins that is not an option
FLAG = "flag"  # the kind of an option without a value
HELP = ("-h", "--help")
MOST_SEEDS = 1000  # in one run


class Setting(NamedTuple):
    """The kind of a value, its help, and its default."""

    kind: str  # a key of READERS, with "|none" if it may be None, and with other words that it may be
    help: str
    default: Any


class Word(NamedTuple):
    """An argument or an option of a command."""

    spelled: str  # --batch; for an argument what stands for it, such as DATA
    keyword: str  # of the function that gets the value
    kind: str
    help: str
    shown: str = ""  # what stands for the value of an option, such as FOLDER
    place: str = ""  # the function's parameter that gets a table with this keyword, if it has no own one
    is_required: bool = False
    is_hidden: bool = False  # not in the help

    @property
    def is_option(self) -> bool:
        return self.spelled.startswith("--")

    @property
    def is_repeated(self) -> bool:
        """Whether it may stand several times, or stands for several values."""
        return self.kind == "names" or self.spelled.endswith("...")

    @property
    def usage(self) -> str:
        return f"{self.spelled} {self.shown}".strip()


def settings_of(record: Any, prefix: str = "") -> dict[str, Setting]:
    """The fields of a record by name; those of a nested record have a dot, as in optimizer.epsilon. The help
    of a field is inherited: a subclass that changes a default need not repeat it."""
    found: dict[str, Setting] = {}
    for field in dataclasses.fields(record):
        value, name = getattr(record, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            found |= settings_of(value, f"{name}.")
            continue
        declared = (vars(cls).get("__annotations__", {}).get(field.name) for cls in type(record).__mro__)
        help = next((str(get_args(each)[1]) for each in declared if get_origin(each) is Annotated), "")
        found[name] = Setting(kind_of(field.type), help, value)
    return found


def setting_words(
    settings: Mapping[str, Any],
    place: str,
    *,
    others: Mapping[str, Mapping[str, Any]] | None = None,
    is_hidden: bool = False,
) -> list[Word]:
    """An option for each setting; `others` are the defaults by recipe."""
    words = []
    for name, (kind, help, default) in settings.items():
        texts = {recipe: shown(each.get(name, default)) for recipe, each in (others or {}).items()}
        usual = next(iter(texts.values()), shown(default))
        if len(set(texts.values())) > 1:
            usual = ", ".join(f"{recipe}: {text}" for recipe, text in texts.items())
        help = f"{help} [{usual}]".strip()
        words.append(Word(_option(name), name, kind, help, kind, place, is_hidden=is_hidden))
    return words


def words_of(function: Callable[..., Any]) -> dict[str, list[Word]]:
    """The words of a function by the title under which the help lists them."""
    groups: dict[str, list[Word]] = {"arguments": [], "options": []}
    for name, parameter in signature(function).parameters.items():
        if _is_record(kind := parameter.annotation):
            groups[str(kind.__doc__).rstrip(".")] = setting_words(settings_of(kind()), name)
        elif get_origin(kind) is Annotated:
            word = _word(name, parameter)
            groups["options" if word.is_option else "arguments"].append(word)
    return groups


def _word(name: str, parameter: Parameter) -> Word:
    """The word of a parameter; its help says the default, unless that is none or nothing."""
    help, *named = get_args(parameter.annotation)[1:]
    label, default = "".join(named), parameter.default
    kind = FLAG if default is False else kind_of(parameter.annotation).removesuffix("|none")
    if not any(default is nothing for nothing in (Parameter.empty, None, False, "", ())):
        help = f"{help} [{shown(default)}]"
    word = Word(label or name.upper(), name, kind, help, is_required=default is Parameter.empty)
    if label.startswith("--"):  # an option of another name, or one that Python takes by its place
        return word._replace(spelled=label.partition(" ")[0], shown=label.partition(" ")[2])
    if parameter.kind is not Parameter.KEYWORD_ONLY:
        return word
    return word._replace(spelled=_option(name), shown="" if kind == FLAG else label or kind)


class CommandLine:
    """A command with its words by title; `perform` adds some that depend on the words that are typed."""

    def __init__(self, name: str, function: Callable[..., Any], typed: list[str]):
        self.name, self.typed = f"optimist {name}", typed
        self.about = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
        self.groups = words_of(function)
        self.after = ""  # below the help

    def add(self, title: str, words: list[Word]) -> None:
        """Add options under a title; UsageError if a field has the name of another option."""
        options = self.options()
        for word in words:
            if word.spelled in options and not word.is_hidden:
                raise UsageError(f'the field "{word.keyword}" has the name of another option: rename it')
        self.groups.setdefault(title, []).extend(word for word in words if word.spelled not in options)

    def words(self) -> list[Word]:
        return [word for group in self.groups.values() for word in group]

    def options(self) -> dict[str, Word]:
        return {word.spelled: word for word in self.words() if word.is_option}

    def arguments(self) -> list[str]:
        """The typed words that are neither options nor their values."""
        return [text for option, text in self._split() if option is None and text is not None]

    def typed_options(self) -> set[str]:
        return {option for option, _ in self._split() if option is not None}

    def value(self, option: str) -> str | None:
        """The value that is typed for an option."""
        return next((text for name, text in self._split() if name == option), None)

    def _split(self) -> Iterator[tuple[str | None, str | None]]:
        """Each typed option with its value, None if it has none, and each argument. An option that is not
        known yet has a value."""
        options, waiting = self.options(), deque(self.typed)
        while waiting:
            text = waiting.popleft()
            name, equals, value = text.partition("=")
            if not _is_option(text):
                yield None, text
            elif equals:
                yield name, value
            elif name in HELP or (name in options and options[name].kind == FLAG):
                yield name, None
            else:
                yield name, None if not waiting or _is_option(waiting[0]) else waiting.popleft()

    def values(self) -> dict[str, Any]:
        """The value of each word by its keyword; UsageError for an unknown word, or a missing one."""
        options, arguments, values = self.options(), self.arguments(), dict[str, Any]()
        for name, text in self._split():
            if name is not None and name not in options:
                raise UsageError(f'{self.name} has no option "{name}": {did_you_mean(name, options)}')
            if name is not None:
                self._keep(values, options[name], text)
        for word in self.groups["arguments"]:
            count = len(arguments) if word.is_repeated else 1
            for text in arguments[:count]:
                self._keep(values, word, text)
            arguments = arguments[count:]
        if arguments:
            raise UsageError(f'{self.name} has no argument "{arguments[0]}": see {self.name} --help')
        for word in self.words():
            if word.is_required and word.keyword not in values:
                what = word.help.partition(";")[0]
                raise UsageError(f"name {what}{f': {word.usage}' if word.is_option else ''}")
        return values

    def _keep(self, values: dict[str, Any], word: Word, text: str | None) -> None:
        if (text is None) != (word.kind == FLAG):
            needs = "takes no value" if word.kind == FLAG else f"needs a value: {word.usage}"
            raise UsageError(f"{word.spelled} {needs}; see {self.name} --help")
        try:
            value = True if text is None else read(word.kind, text)
        except UsageError as problem:
            raise UsageError(f"{word.spelled}: {problem}") from None
        table = values.setdefault(word.place, {}) if word.place else values
        table[word.keyword] = [*table.get(word.keyword, []), value] if word.is_repeated else value

    def usage(self) -> str:
        """The command with its arguments and required options."""
        required = [word.usage for word in self.words() if word.is_required]
        others = [f"[{word.usage}]" for word in self.groups["arguments"] if not word.is_required]
        return " ".join([self.name, *required, *others, "[options]"])

    def help(self) -> str:
        """The page of help."""
        groups = {
            title: {word.usage: word.help for word in words if not word.is_hidden}
            for title, words in self.groups.items()
        }
        groups["options"] = {", ".join(HELP): "print this help"} | groups["options"]
        column = min(34, 4 + max(len(usage) for group in groups.values() for usage in group))
        parts = [f"usage: {self.usage()}", textwrap.fill(self.about, help_width())]
        for title, group in groups.items():
            rows = [_row(usage, help, column) for usage, help in group.items()]
            parts += ["\n".join([f"{title}:", *rows])] if rows else []
        return "\n\n".join([*parts, *filter(None, [wrapped(self.after)])])


def call(function: Callable[..., Any], values: dict[str, Any]) -> None:
    """Call the function with the values of its words. Those of a group become its record, or its table."""
    groups: dict[str, Any] = {}
    for name, parameter in signature(function).parameters.items():
        if _is_record(kind := parameter.annotation):
            groups[name] = kind(**values.get(name, {}))
        elif get_origin(kind) is dict:
            groups[name] = values.get(name, {})
    function(**{**values, **groups})


def help_width() -> int:
    return min(110, shutil.get_terminal_size((100, 24)).columns)


def in_columns(names: Mapping[str, str]) -> str:
    """Names and descriptions in two columns."""
    width = max(map(len, names))
    return "\n".join(f"  {name:{width}}  {about}" for name, about in names.items())


def wrapped(text: str) -> str:
    """Long lines, broken; what follows stands below the text of their second column."""
    lines = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        gap = line.find("  ", indent)
        below = gap + len(line[gap:]) - len(line[gap:].lstrip()) if gap > 0 else indent
        lines.append(textwrap.fill(line, help_width(), subsequent_indent=" " * below))
    return "\n".join(lines)


def _row(usage: str, help: str, column: int) -> str:
    margin = " " * column
    text = textwrap.fill(help, help_width(), initial_indent=margin, subsequent_indent=margin)
    begin = f"  {usage}"
    return f"{begin}\n{text}" if len(begin) + 2 > column else begin + text[len(begin) :]


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_option(text: str) -> bool:
    return text.startswith("-") and text != "-" and not NEGATIVE.match(text)


def kind_of(annotation: Any) -> str:
    """The kind of value: "int", "number|none", "number|auto"; the words of a literal stand beside a type."""
    members = _members(annotation)
    names = [each for each in members if isinstance(each, str)]
    plain = next((name for name in names if name != "None"), "")
    kind = KINDS.get("Path" if "Path" in names else plain, "name")
    words = [word for literal in members if len(members) > 1 and literal not in names for word in literal]
    return "|".join([kind, *(["none"] if "None" in names else []), *words])


def _members(annotation: Any) -> list[Any]:
    """The names of the types of a union, a type may be a text so that it need not be imported; and the words
    of a literal as a tuple."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return [get_args(annotation)]
    if get_origin(annotation) in (Union, types.UnionType):
        return [each for part in get_args(annotation) for each in _members(part)]
    if isinstance(annotation, ForwardRef):
        return list(annotation.__forward_arg__.split(" | "))
    if get_origin(annotation) or not isinstance(annotation, type):
        return [str(annotation).rpartition("collections.abc.")[2]]
    return [annotation.__name__.removesuffix("Type")]


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
        values = tuple(map(number, text.split(",")))
    except UsageError:
        raise UsageError(f'"{text}" is not a list of numbers: write one, or several as in -1,2.5') from None
    return values if len(values) > 1 else values[0]


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
