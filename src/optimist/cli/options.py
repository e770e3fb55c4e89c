"""Parsers with one-line errors, and readers of the values of options."""

import argparse
import math
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

from optimist.errors import UsageError, did_you_mean

MOST_SEEDS = 1000  # in one run
FLAGS = (
    "-h",
    "--help",
    "--restart",
    "--dry-run",
    "--prepare",
    "--no-select",
    "--detach",
    "--checkpoints",
    "--private",
    "--json",
    "--debug",
    "--follow",
    "--anyway",
    "--quick",
)  # options without a value
NEGATIVE = re.compile(r"-\.?\d")  # how a number, or a list of them, begins that is not an option


class Parser(argparse.ArgumentParser):
    """A command. `fill` adds its options once its words are known; `run` is called with the parsed options.

    Some defaults depend on the agent or the study that the words name.
    """

    def __init__(
        self,
        prog: str,
        *,
        fill: Callable[["Parser", list[str]], None] | None = None,
        run: Callable[[argparse.Namespace], None] | None = None,
        **texts: Any,
    ):
        super().__init__(prog, allow_abbrev=False, formatter_class=HelpFormatter, **texts)
        self._positionals.title = "arguments"
        self._negative_number_matcher = NEGATIVE  # argparse's own takes -1,2 and -1e3 for options
        self.fill, self.missing = fill, dict[str, str]()
        if run:
            self.set_defaults(run=run)

    def demand(self, name: str, remedy: str, **more: Any) -> None:
        """Add a required argument, and the error message if it is missing."""
        action = self.add_argument(name, **more)
        action.required = True
        self.missing["/".join(action.option_strings) or str(action.metavar or action.dest)] = remedy

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[override]
        if self.fill:
            self.fill(self, list(args))
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            raise self._unknown(unknown[0].split("=")[0])
        return found, unknown

    def _unknown(self, word: str) -> UsageError:
        if not word.startswith("-"):
            return UsageError(f'{self.prog} has no argument "{word}": see {self.prog} --help')
        known = {name for action in self._actions for name in action.option_strings if name[:2] == "--"}
        return UsageError(f'{self.prog} has no option "{word}": {did_you_mean(word, known)}')

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            above = self.prog.partition(" ")[2]
            name = f'"{above} {value}"' if above else f'command "{value}"'
            raise UsageError(f"there is no {name}: {did_you_mean(value, action.choices)}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if action.type is Path and not arg_string:  # pathlib would take it for the current folder
            name = "/".join(action.option_strings) or action.metavar
            raise UsageError(f"{name} is empty: name a path (a variable of the shell may not be set)")
        return super()._get_value(action, arg_string)

    def _print_message(self, message: str, file: Any = None) -> None:
        print(message, end="", file=file)  # argparse's own hides a BrokenPipeError

    def error(self, message: str) -> NoReturn:
        _, asks, names = message.partition("arguments are required: ")
        remedy = next((self.missing[name] for name in names.split(", ") if name in self.missing), None)
        raise UsageError(remedy if asks and remedy else f"{message}; see {self.prog} --help")


def demand_dataset_out(parser: Parser, more: str = "") -> None:
    """Add the required option --out of a command that makes a dataset; `more` is added to its help."""
    remedy = "name the dataset's folder: --out DATA"
    parser.demand("--out", remedy, type=Path, metavar="DATA", help=f"the dataset's folder{more}")


def command(commands: Any, name: str, run: Callable, fill: Callable | None = None, **texts: Any) -> None:
    """Add a command that calls `run`, whose docstring is the help."""
    text = run.__doc__ or ""
    first = text.partition("\n")[0].partition(". ")[0].rstrip(".")
    about = {"help": first[:1].lower() + first[1:], "description": " ".join(text.split())}
    commands.add_parser(name, fill=fill, run=run, **about, **texts)


def group(commands: Any, name: str, *, help: str, description: str) -> Any:
    """Add a command that has commands of its own; return what `command` adds them to."""
    parser: Parser = commands.add_parser(
        name, help=help, description=description, run=lambda _: parser.print_help()
    )
    return parser.add_subparsers(title="commands", metavar="COMMAND")


class HelpFormatter(argparse.HelpFormatter):
    def __init__(self, prog: str):
        super().__init__(
            prog, max_help_position=34, width=min(110, shutil.get_terminal_size((100, 24)).columns)
        )

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Keep the line breaks; wrap a long line below the text of its second column."""
        return "\n".join(_wrapped(line, width) for line in text.splitlines())

    def _format_usage(self, usage, actions, groups, prefix):
        """Show only arguments and required options; the list below has all options."""
        options = [action for action in actions if action.option_strings]
        kept = [action for action in actions if action not in options or action.required]
        text = super()._format_usage(usage, kept, groups, prefix)
        return text.rstrip() + (" [options]\n\n" if usage is None and len(options) > 1 else "\n\n")


def _wrapped(line: str, width: int) -> str:
    indent = len(line) - len(line.lstrip())
    gap = line.find("  ", indent)
    below = gap + len(line[gap:]) - len(line[gap:].lstrip()) if gap > 0 else indent
    return textwrap.fill(line, width, subsequent_indent=" " * below)


def arguments_in(words: Iterable[str]) -> list[str]:
    """The words that are neither options nor their values."""
    found, is_value = [], False
    for word in words:
        if word.startswith("-") and not NEGATIVE.match(word):
            is_value = "=" not in word and word not in FLAGS
        elif is_value:
            is_value = False
        else:
            found.append(word)
    return found


def value_in(words: list[str], option: str) -> str | None:
    """The value of an option in words that are not parsed yet."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == option:
            return value if equals else "".join(words[place + 1 : place + 2])
    return None


def seeds(text: str) -> tuple[int, ...]:
    """ "0,1,2" or "0-4" as numbers."""
    first, dash, last = text.partition("-")
    try:
        if dash and int(last) - int(first) >= MOST_SEEDS:
            raise argparse.ArgumentTypeError(f'"{text}" has too many seeds: at most {MOST_SEEDS} at once')
        if dash and int(last) < int(first):
            raise argparse.ArgumentTypeError(f'"{text}" counts down: write {last}-{first}')
        return tuple(range(int(first), int(last) + 1)) if dash else tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a list of seeds: write 0,1,2 or 0-4') from None


def whole_number(text: str) -> int:
    """An integer; 1e6 and 1_000_000 are accepted too."""
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


def numbers(text: str) -> float | tuple[float, ...]:
    """One number, or several with commas between them."""
    try:
        found = tuple(map(number, text.split(",")))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a list of numbers: write one, or several as in -1,2.5'
        ) from None
    return found if len(found) > 1 else found[0]


def yes_or_no(text: str) -> bool:
    words = {"yes": True, "true": True, "no": False, "false": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f'"{text}" is neither yes nor no')
    return words[text.lower()]
