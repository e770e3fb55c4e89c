"""Commands of optimist side by side, until they are done or until the clock says so.

    python docs/results/by_the_clock.py FOLDER --until 1600 "NAME=study run online --scale mini" ...

Each command has its own folder, FOLDER/NAME, and its output is in FOLDER/NAME.txt. A command that fails is
started again and continues. FOLDER/found.tar.gz has the text files of all, and is written anew every half
minute; `study_scores.py` reads a study that was unpacked from it. The same command continues.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from work import Diary, Work, pack, share_the_device, stop, wait

PLAYERS = Path(__file__).with_name("study_players.py")
LOOK_EVERY = 20  # seconds


def read_new_logs(folder: Path, read: set[Path]) -> None:
    """Start to read the players' returns from every log of a study that has become complete."""
    complete = {path.parents[1] for path in folder.glob("*/logs/*/agent/DONE")}
    for log in sorted(complete - read):
        subprocess.Popen([sys.executable, PLAYERS, log], env={**os.environ, "JAX_PLATFORMS": "cpu"})
    read |= complete


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("commands", nargs="+", help="NAME=words after `optimist`")
    parser.add_argument("--until", type=float, default=1600, help="seconds")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    diary, until = Diary(asked.folder / "diary.jsonl"), time.monotonic() + asked.until
    share_the_device()
    works = []
    for name, _, words in (command.partition("=") for command in asked.commands):
        diary.add(f"{name} starts")
        works.append(Work(name, shlex.split(words), asked.folder))
    running, read = list(works), set()
    while running and time.monotonic() < until:
        wait(running, min(until, time.monotonic() + LOOK_EVERY), asked.folder)
        read_new_logs(asked.folder, read)
        for work in [work for work in running if not work.runs()]:
            diary.add(f"{work.name} ended with code {work.process.returncode}")
            running.remove(work)
    stop(works)
    pack(asked.folder)
    diary.add("packed")


if __name__ == "__main__":
    main()
