"""The command line: finds the command, and turns whatever goes wrong into one line and an exit code."""

import logging
import os
import sys
import traceback

import optimist
from optimist.cli import commands
from optimist.cli import data as data_commands
from optimist.cli import scores as score_commands
from optimist.cli import study as study_commands
from optimist.errors import OptimistError, StorageError, UsageError, did_you_mean

USAGE = """usage: optimist COMMAND ...

  demo                              the whole path in minutes: play, log, train on the log, report
  collect ENV --out DATA            an online agent plays; everything it saw is kept
  train AGENT DATA --out RUN        learn from the data alone; --seeds 0,1,2 trains them together
  evaluate RUN                      full episodes with the trained policy
  play RUN --out video.gif          watch it
  data info DATA                    what a dataset holds
  data verify PATH                  check every byte of it, or of DQN Replay logs
  data import dqn-replay PATH --out DATA
                                    public logs become a dataset
  data export dqn-replay DATA --out FOLDER
                                    and a dataset becomes such logs
  agents                            every agent and its presets
  scores FILE.csv                   a table of scores becomes the paper's Table 1, beside the paper's own
  study run asymptotic              Table 1 and Figure 1 at a scale that fits; `study` lists the others
  study status FOLDER               how far a study is, run by run
  study report FOLDER               what it found, as one page; two folders: side by side
  study run proposition-1           REM's heads become one function, and it is Q*: seconds, with a figure
  study run final-buffer            DDPG plays MuJoCo; DDPG, TD3 and BCQ learn from all of it: Figure 8
  study run random-scores           what random play scores on the 60 Atari games

Every command explains itself with --help. The same command again continues what was interrupted.
--debug shows the whole traceback of an error; --roms FOLDER plays Atari from ROMs of your own.

exit codes: 0 done, 2 a wrong word or value, 3 a problem with the data, 4 a problem with the run folder,
5 training diverged, 6 the disk refused, 130 or 143 interrupted and saved, 1 anything else."""


COMMANDS = {
    "demo": commands.demo,
    "collect": commands.collect,
    "train": commands.train,
    "evaluate": commands.evaluate,
    "play": commands.play,
    "data": data_commands.data,
    "agents": commands.agents,
    "scores": score_commands.scores,
    "study": study_commands.study,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; whatever a person can mend is one line on stderr and an exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    logging.basicConfig(format="optimist: %(message)s", level=logging.WARNING)
    try:
        _command(_with_own_roms([word for word in words if word != "--debug"]))
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


def _command(words: list[str]) -> None:
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE, flush=True)  # at once; to list the agents takes a second
        print(f"\n{commands.agent_lines()}")
    elif words[0] == "--version":
        print(optimist.__version__)
    elif words[0] not in COMMANDS:
        raise UsageError(f'there is no command "{words[0]}": {did_you_mean(words[0], COMMANDS)}')
    else:
        COMMANDS[words[0]](words[1:])
