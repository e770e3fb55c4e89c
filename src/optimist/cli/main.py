"""The command line: runs a command, and prints an error as one line with an exit code."""

import importlib.metadata
import logging
import os
import sys
import traceback
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from optimist import api, plugins
from optimist.cli import data, learning, listing, runs, study
from optimist.cli.words import HELP, CommandLine, call, in_columns, words_of, wrapped
from optimist.errors import (
    OptimistError,
    StorageError,
    UsageError,
    command_line,
    did_you_mean,
    in_one_line,
)

DESCRIPTION = "Offline reinforcement learning: agents that learn from logged play."
EPILOG = """Begin with:
  optimist demo                                     the whole path in minutes
  optimist collect minatar/breakout --out data      a log of your own
  optimist train rem data --seeds 0,1,2 --out run   learn from it
  optimist evaluate run                             score it
  optimist select run                               choose a policy by the log alone
  optimist export run --to policy.onnx              use it without Optimist
  optimist doctor run                               what is wrong, and how to mend it
  optimist bench --quick                            how fast this machine is

Every command has --help. The same command again continues what was interrupted.
--debug shows the traceback of an error; --roms FOLDER uses your own Atari ROMs.

exit codes: 0 done, 2 a wrong word or value, 3 a problem with the data,
4 a problem with the run folder, 5 training diverged, 6 a file cannot be read
or written, 7 no policy was chosen, 130 or 143 interrupted and saved,
1 anything else."""


class Command(NamedTuple):
    """A command: the function that it runs, and what is made of its signature."""

    run: Callable[..., None]
    face: Callable[..., Any] | None = None  # has further words and the help; `run` calls it
    more: Callable[[CommandLine], None] = lambda line: None  # adds words that depend on others
    after: str = ""  # below the help
    continues: bool = False  # saves checkpoints, from which the same command continues


GROUPS = {
    "data": "Describe, check, import, export or share a dataset.",
    "run": "Send a run to the Hugging Face Hub, or bring one from there.",
    "study": "Run the paper's experiments or your own, and report them: grids of runs with one report.",
}
COMMANDS = {
    "demo": Command(learning.demo, more=learning.demo_words, continues=True),
    "collect": Command(learning.collect, api.collect, learning.collect_words, continues=True),
    "train": Command(learning.train, api.train, learning.train_words, continues=True),
    "evaluate": Command(runs.evaluate),
    "play": Command(runs.play),
    "select": Command(runs.select, api.select),
    "report": Command(runs.report),
    "export": Command(runs.export, api.export),
    "data info": Command(data.info),
    "data report": Command(data.report),
    "data verify": Command(data.verify),
    "data append": Command(data.append),
    "data import": Command(data.import_logs, more=data.import_words),
    "data export": Command(data.export_logs, more=data.export_words),
    "data push": Command(data.push),
    "data pull": Command(data.pull),
    "run push": Command(runs.push),
    "run pull": Command(runs.pull),
    "agents": Command(listing.agents),
    "environments": Command(listing.environments),
    "scores": Command(study.scores, after=study.FORMAT),
    "study run": Command(study.run, more=study.run_words, continues=True),
    "study status": Command(study.status),
    "study report": Command(study.report),
    "study work": Command(study.work, continues=True),
    "study push": Command(study.push),
    "study pull": Command(study.pull),
    "bench": Command(listing.bench),
    "doctor": Command(listing.doctor),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; print an error that the user can correct as one line; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    words, debug = [word for word in given if word != "--debug"], "--debug" in given
    _open_what_is_closed()
    logging.basicConfig(format="optimist: %(message)s", level=logging.WARNING)
    try:
        perform(words)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the reader of the output closed the pipe
        _print_no_more()
        return 1
    except Exception as problem:
        line, code = _answer(problem)
        if line is None:
            raise
        if debug:
            traceback.print_exc()
        print(f"optimist: {line}", file=sys.stderr)
        return code
    except KeyboardInterrupt:
        command = COMMANDS.get(split(_with_own_roms(words))[0])
        saves = command is not None and command.continues
        how = "continues from the last checkpoint" if saves else "begins again"
        print(f"optimist: stopped at once; the same command {how}", file=sys.stderr)
        return 130


def _answer(problem: Exception) -> tuple[str | None, int]:
    """The line about an error that the user can correct, and the exit code; no line for any other."""
    if isinstance(problem, OptimistError):
        return str(problem), problem.exit_code
    if isinstance(problem, importlib.metadata.PackageNotFoundError):
        return "the version is unknown: the package is not installed", 1
    if line := plugins.failure(problem):
        return line, 1
    if line := _platform_failure():
        return line, UsageError.exit_code
    if isinstance(problem, OSError) and problem.filename is None and _output_fails():
        return f"standard output: {problem.strerror}; the same command continues", StorageError.exit_code
    if isinstance(problem, OSError):
        return f"{problem.filename or 'a file'}: {problem.strerror or problem}", StorageError.exit_code
    return None, 1


def _open_what_is_closed() -> None:
    """Python has no streams for closed files, and the next file that is opened would get their numbers."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _output_fails() -> bool:
    """Can standard output not be written, such as a full disk? What is left of it is then dropped."""
    try:
        print(flush=True)
    except OSError:
        _print_no_more()
        return True
    return False


def _print_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _platform_failure() -> str | None:
    """A line if the user chose a platform on which JAX cannot compute; its own errors may not say so."""
    platform = os.environ.get("JAX_PLATFORMS")
    if not platform or "jax" not in sys.modules:
        return None
    try:
        sys.modules["jax"].devices()
    except (RuntimeError, AssertionError) as problem:
        reason = in_one_line(str(problem).partition("\n")[0]) or "it is not installed"
        remedy = "choose cpu, or unset the variable"
        return f"JAX_PLATFORMS={platform}: JAX cannot compute there ({reason}); {remedy}"
    return None


def perform(words: list[str]) -> None:
    """Run the command that the words name; errors are raised."""
    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UsageError(f"{in_one_line(word)} is not UTF-8, as names in our files are: rename it")
    words = _with_own_roms([_with_home(word) for word in words])
    name, typed = split(words)
    if name not in COMMANDS:
        _perform_group(name, typed)
        return
    command, line = COMMANDS[name], command_words(name, typed)
    if set(typed) & set(HELP):
        print(line.help())
        return
    values = line.values()
    if "command" in signature(command.face or command.run).parameters:
        values["command"] = command_line(name, *typed)
    call(command.run, values)


def command_words(name: str, typed: list[str]) -> CommandLine:
    """The words of the command of this name, some of which depend on those that are typed."""
    command = COMMANDS[name]
    line = CommandLine(name, command.face or command.run, typed)
    for title, words in words_of(command.run).items() if command.face else ():
        line.add(title, words)
    line.after = command.after
    command.more(line)
    return line


def split(words: list[str]) -> tuple[str, list[str]]:
    """The name of the command or of the group at the beginning of the words, and the other words."""
    names = (" ".join(words[:count]) for count in (2, 1))
    name = next((name for name in names if name in COMMANDS or name in GROUPS), "")
    return name, words[len(name.split()) :]


def _perform_group(group: str, typed: list[str]) -> None:
    """Print the help of all commands, or of those of a group; UsageError if another word is typed."""
    if typed == ["--version"] and not group:
        print(importlib.metadata.version("optimist-rl"))
        return
    abouts = {
        name: _first_sentence((command.face or command.run).__doc__) for name, command in COMMANDS.items()
    }
    if group:
        begin, about, after = f"{group} ", GROUPS[group], ""
        commands = {name.removeprefix(begin): text for name, text in abouts.items() if name.startswith(begin)}
    else:
        begin, about, after = "", DESCRIPTION, f"\n\n{EPILOG}"
        first = dict.fromkeys(name.partition(" ")[0] for name in abouts)
        commands = {name: abouts.get(name) or _first_sentence(GROUPS[name]) for name in first}
    if typed and typed[0] not in (*HELP, "help"):
        if typed[0].startswith("-"):
            hint = did_you_mean(typed[0], ["--version", "--help"])
            raise UsageError(f'{f"optimist {group}".strip()} has no option "{typed[0]}": {hint}')
        what = "" if group else "command "
        raise UsageError(f'there is no {what}"{begin}{typed[0]}": {did_you_mean(typed[0], commands)}')
    listed = wrapped(in_columns(commands))
    print(f"usage: optimist {begin}COMMAND ...\n\n{about}\n\ncommands:\n{listed}{after}")


def _first_sentence(text: str | None) -> str:
    sentence = " ".join((text or "").split()).partition(". ")[0].rstrip(".")
    return sentence[:1].lower() + sentence[1:]


def _with_home(word: str) -> str:
    """The word with the home folder in place of a ~ that the shell has left, as in --out=~/runs: a folder
    with the name ~ would be made."""
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    if not value.startswith("~"):
        return word
    from optimist.data.machine import with_home

    return option + equals + with_home(value)


def _with_own_roms(words: list[str]) -> list[str]:
    """Apply --roms FOLDER and return the other words; the folder is no part of an experiment's settings."""
    if "--roms" not in words:
        return words
    place = words.index("--roms")
    folder = "".join(words[place + 1 : place + 2])
    if not os.path.isdir(folder):
        raise UsageError(f'--roms "{folder}" is not a folder: name one with ROMs such as breakout.bin')
    os.environ["OPTIMIST_ROMS"] = folder
    return words[:place] + words[place + 2 :]
