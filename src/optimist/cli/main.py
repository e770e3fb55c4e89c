"""The command line: runs a command, and prints an error as one line with an exit code."""

import importlib.metadata
import logging
import os
import sys
import traceback

from optimist import plugins
from optimist.cli import (
    bench,
    collect,
    data,
    demo,
    doctor,
    evaluate,
    export,
    hub,
    listing,
    report,
    scores,
    select,
    study,
    train,
)
from optimist.cli.options import Parser
from optimist.errors import OptimistError, StorageError, UsageError, in_one_line

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

WITH_CHECKPOINTS = ("demo", "collect", "train", "study run", "study work")


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
        line, code = _told(problem)
        if line is None:
            raise
        if debug:
            traceback.print_exc()
        print(f"optimist: {line}", file=sys.stderr)
        return code
    except KeyboardInterrupt:
        saves = " ".join(_with_own_roms(words)).startswith(WITH_CHECKPOINTS)
        how = "continues from the last checkpoint" if saves else "begins again"
        print(f"optimist: stopped at once; the same command {how}", file=sys.stderr)
        return 130


def _told(problem: Exception) -> tuple[str | None, int]:
    """The line about an error that the user can correct, and the exit code; no line for any other."""
    if isinstance(problem, OptimistError):
        return str(problem), problem.exit_code
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
    asked = os.environ.get("JAX_PLATFORMS")
    if not asked or "jax" not in sys.modules:
        return None
    try:
        sys.modules["jax"].devices()
    except (RuntimeError, AssertionError) as problem:
        reason = in_one_line(str(problem).partition("\n")[0]) or "it is not installed"
        return (
            f"JAX_PLATFORMS={asked}: JAX cannot compute there ({reason}); choose cpu, or unset the variable"
        )
    return None


def perform(words: list[str]) -> None:
    """Run the command that the words name; errors are raised."""
    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UsageError(f"{in_one_line(word)} is not UTF-8, as names in our files are: rename it")
    words = _with_own_roms([_with_home(word) for word in words])
    try:
        options = parser().parse_args(["--help"] if words[:1] in ([], ["help"]) else words)
    except SystemExit:  # help or the version was printed
        return
    options.run(options)


def parser() -> Parser:
    """The parser of all commands; each adds its options once its words are known."""
    usage = "optimist COMMAND ..."
    top = Parser(
        "optimist", usage=usage, description=DESCRIPTION, epilog=EPILOG, run=lambda _: top.print_help()
    )
    top.add_argument("--version", action="version", version=_version(), help="print the version")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", prog="optimist")
    for group in (
        *(demo, collect, train, evaluate, select, report, export),
        *(data, hub, listing, scores, study, bench, doctor),
    ):
        group.add(commands)
    return top


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


def _version() -> str:
    try:
        return importlib.metadata.version("optimist-rl")
    except importlib.metadata.PackageNotFoundError:
        return "unknown: the package is not installed"
