"""The command line: finds the command, and turns whatever goes wrong into one line and an exit code."""

import logging
import os
import sys
import traceback

import optimist
from optimist.cli import data, evaluate, listing, scores, study, train
from optimist.cli.options import Parser
from optimist.errors import OptimistError, StorageError, UsageError

DESCRIPTION = "Offline reinforcement learning: agents that learn from logged play."
EPILOG = """Begin with:
  optimist demo                                     the whole path in minutes
  optimist collect minatar/breakout --out data      a log of your own
  optimist train rem data --seeds 0,1,2 --out run   learn from it
  optimist evaluate run                             score it

Every command has --help. The same command again continues what was interrupted.
--debug shows the traceback of an error; --roms FOLDER plays Atari from ROMs of your own.

exit codes: 0 done, 2 a wrong word or value, 3 a problem with the data,
4 a problem with the run folder, 5 training diverged, 6 the disk refused,
130 or 143 interrupted and saved, 1 anything else."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; whatever a person can mend is one line on stderr and an exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    logging.basicConfig(format="optimist: %(message)s", level=logging.WARNING)
    try:
        perform([word for word in words if word != "--debug"])
        sys.stdout.flush()
        return 0
    except OptimistError as problem:
        if debug:
            traceback.print_exc()
        print(f"optimist: {problem}", file=sys.stderr)
        return problem.exit_code
    except BrokenPipeError:  # the reader of our output left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as problem:
        if debug:
            traceback.print_exc()
        print(f"optimist: {problem.filename or 'a file'}: {problem.strerror or problem}", file=sys.stderr)
        return StorageError.exit_code
    except KeyboardInterrupt:
        print("optimist: stopped at once; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130


def perform(words: list[str]) -> None:
    """The command that the words name, as it is: what goes wrong is raised."""
    words = _with_own_roms(words)
    try:
        options = parser().parse_args(["--help"] if words[:1] in ([], ["help"]) else words)
    except SystemExit:  # help or the version was printed
        return
    options.run(options)


def parser() -> Parser:
    """Every command; each adds its own options when its words are known."""
    usage = "optimist COMMAND ..."
    top = Parser(
        "optimist", usage=usage, description=DESCRIPTION, epilog=EPILOG, run=lambda _: top.print_help()
    )
    top.add_argument("--version", action="version", version=optimist.__version__, help="print the version")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", prog="optimist")
    for group in (train, evaluate, data, listing, scores, study):
        group.add(commands)
    return top


def _with_own_roms(words: list[str]) -> list[str]:
    """The words without --roms FOLDER: where the ROMs lie is about this machine, not about an experiment."""
    if "--roms" not in words:
        return words
    place = words.index("--roms")
    folder = "".join(words[place + 1 : place + 2])
    if not os.path.isdir(folder):
        raise UsageError(f'--roms "{folder}" is no folder: name one with ROMs such as breakout.bin')
    os.environ["OPTIMIST_ROMS"] = folder
    return words[:place] + words[place + 2 :]
