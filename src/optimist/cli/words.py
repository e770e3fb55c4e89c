"""The words of a command: its arguments and options, made from the signature of a function, and their values.

A parameter whose annotation has a help is a word: positional ones are arguments, keyword-only ones are
options, and one that is False is an option without a value. A parameter that is a record is a group of
options, one for each field.
"""

import dataclasses
import re
import shutil
import textwrap
from collections import deque
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from optimist.cli.settings import Setting, default_in_words, kind_of, read, settings_of, shown
from optimist.errors import UsageError, did_you_mean

NEGATIVE = re.compile(r"-\.?\d")  # how a number, or a list of them, begins that is not an option
FLAG = "flag"  # the kind of an option without a value
HELP = ("-h", "--help")


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


def words_of(function: Callable[..., Any]) -> dict[str, list[Word]]:
    """The words of a function by the title under which the help lists them."""
    found: dict[str, list[Word]] = {"arguments": [], "options": []}
    for name, parameter in signature(function).parameters.items():
        if _is_record(kind := parameter.annotation):
            found[str(kind.__doc__).rstrip(".")] = setting_words(settings_of(kind()), name)
        elif get_origin(kind) is Annotated:
            word = _word(name, parameter)
            found["options" if word.is_option else "arguments"].append(word)
    return found


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


def setting_words(
    settings: Mapping[str, Setting],
    place: str,
    *,
    others: Mapping[str, Mapping[str, Any]] | None = None,
    is_hidden: bool = False,
) -> list[Word]:
    """An option for each setting; `others` are the defaults by recipe."""
    found = []
    for name, (kind, help, default) in settings.items():
        values = {recipe: each.get(name, default) for recipe, each in (others or {}).items()}
        help = f"{help} [{default_in_words(default, values)}]".strip()
        found.append(Word(_option(name), name, kind, help, kind, place, is_hidden=is_hidden))
    return found


class CommandLine:
    """A command with its words by title; `perform` adds some that depend on the words that are typed."""

    def __init__(self, name: str, function: Callable[..., Any], typed: list[str]):
        self.name, self.typed = f"optimist {name}", typed
        self.about = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
        self.groups = words_of(function)
        self.after = ""  # below the help

    def add(self, title: str, words: list[Word]) -> None:
        """Add options under a title; UsageError if a field has the name of another option."""
        known = self.options()
        for word in words:
            if word.spelled in known and not word.is_hidden:
                raise UsageError(f'the field "{word.keyword}" has the name of another option: rename it')
        self.groups.setdefault(title, []).extend(word for word in words if word.spelled not in known)

    def options(self) -> dict[str, Word]:
        return {word.spelled: word for group in self.groups.values() for word in group if word.is_option}

    def arguments(self) -> list[str]:
        """The typed words that are neither options nor their values."""
        return [text for option, text in self._split() if option is None and text is not None]

    def typed_options(self) -> set[str]:
        return {option for option, _ in self._split() if option is not None}

    def value(self, option: str) -> str | None:
        """The value that is typed for an option."""
        return next((text for name, text in self._split() if name == option), None)

    def _split(self) -> list[tuple[str | None, str | None]]:
        """Each typed option with its value, None if it has none, and each argument. An option that is not
        known yet has a value."""
        options, found, waiting = self.options(), list[tuple[str | None, str | None]](), deque(self.typed)
        while waiting:
            text = waiting.popleft()
            name, equals, value = text.partition("=")
            if not _is_option(text):
                found.append((None, text))
            elif equals:
                found.append((name, value))
            elif name in HELP or (name in options and options[name].kind == FLAG):
                found.append((name, None))
            else:
                found.append((name, None if not waiting or _is_option(waiting[0]) else waiting.popleft()))
        return found

    def values(self) -> dict[str, Any]:
        """The value of each word by its keyword; UsageError for an unknown word, or a missing one."""
        options, found = self.options(), dict[str, Any]()
        for name, text in self._split():
            if name is None:
                continue
            if name not in options:
                raise UsageError(f'{self.name} has no option "{name}": {did_you_mean(name, options)}')
            self._keep(found, options[name], text)
        self._keep_arguments(found)
        for word in (word for group in self.groups.values() for word in group):
            if word.is_required and word.keyword not in found:
                what = word.help.partition(";")[0]
                raise UsageError(f"name {what}{f': {word.usage}' if word.is_option else ''}")
        return found

    def _keep_arguments(self, found: dict[str, Any]) -> None:
        typed = self.arguments()
        for word in self.groups["arguments"]:
            taken = typed if word.is_repeated else typed[:1]
            typed = typed[len(taken) :]
            for text in taken:
                self._keep(found, word, text)
        if typed:
            raise UsageError(f'{self.name} has no argument "{typed[0]}": see {self.name} --help')

    def _keep(self, found: dict[str, Any], word: Word, text: str | None) -> None:
        if (text is None) != (word.kind == FLAG):
            needs = "takes no value" if word.kind == FLAG else f"needs a value: {word.usage}"
            raise UsageError(f"{word.spelled} {needs}; see {self.name} --help")
        try:
            value = True if text is None else read(word.kind, text)
        except UsageError as problem:
            raise UsageError(f"{word.spelled}: {problem}") from None
        table = found.setdefault(word.place, {}) if word.place else found
        table[word.keyword] = [*table.get(word.keyword, []), value] if word.is_repeated else value

    def help(self) -> str:
        """The page of help."""
        width = help_width()
        groups = {
            title: {word.usage: word.help for word in words if not word.is_hidden}
            for title, words in self.groups.items()
        }
        groups["options"] = {", ".join(HELP): "print this help"} | groups["options"]
        column = min(34, 4 + max(len(usage) for group in groups.values() for usage in group))
        parts = [f"usage: {self.usage()}", textwrap.fill(self.about, width)]
        for title, group in groups.items():
            rows = [_row(usage, help, column, width) for usage, help in group.items()]
            parts += ["\n".join([f"{title}:", *rows])] if rows else []
        parts += ["\n".join(wrapped(line, width) for line in self.after.splitlines())] if self.after else []
        return "\n\n".join(parts)

    def usage(self) -> str:
        """The command with its arguments and required options."""
        words = [word for group in self.groups.values() for word in group]
        shown = [word.usage for word in words if word.is_required]
        shown += [f"[{word.usage}]" for word in self.groups["arguments"] if not word.is_required]
        return " ".join([self.name, *shown, "[options]"])


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


def lines(names: Mapping[str, str]) -> str:
    """Names and descriptions in two columns."""
    width = max(map(len, names))
    return "\n".join(f"  {name:{width}}  {about}" for name, about in names.items())


def wrapped(line: str, width: int) -> str:
    """A long line, broken; what follows stands below the text of its second column."""
    indent = len(line) - len(line.lstrip())
    gap = line.find("  ", indent)
    below = gap + len(line[gap:]) - len(line[gap:].lstrip()) if gap > 0 else indent
    return textwrap.fill(line, width, subsequent_indent=" " * below)


def _row(usage: str, help: str, column: int, width: int) -> str:
    margin = " " * column
    text = textwrap.fill(help, width, initial_indent=margin, subsequent_indent=margin)
    begin = f"  {usage}"
    return f"{begin}\n{text}" if len(begin) + 2 > column else begin + text[len(begin) :]


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_option(text: str) -> bool:
    return text.startswith("-") and text != "-" and not NEGATIVE.match(text)
