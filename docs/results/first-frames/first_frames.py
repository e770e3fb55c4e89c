"""One player of an Atari game is logged; then four agents learn from that log alone, on one GPU.

    python docs/results/first-frames/first_frames.py collect FOLDER [--until 510]
    python docs/results/first-frames/first_frames.py learn FOLDER [--until 1000] [--precision bf16]

REM learns first and alone, to `--updates`, which gives the rate of a run that has the device for itself. The
other three agents follow together, and beside them DQN (Adam) with the precision tf32, as a check of the
other precision (with `--precision tf32`, REM with tf32, because the REM before them always has bf16). If time
is left, REM goes on to twice the updates. `--until` is in seconds from the start of the command.

The frames of 5 million steps take 33 GiB, and JAX would reserve the next power of two for them. So every
process reserves its share at its start (`XLA_PYTHON_CLIENT_MEM_FRACTION`). Three shares fit on the device;
the check keeps its frames in the memory of the host.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from work import Diary, Work, describe, pack, share_the_device, stop, wait

AGENTS = {
    "qr_dqn": ["qr_dqn"],
    "dqn_nature": ["dqn", "--preset", "nature"],
    "dqn_adam": ["dqn", "--preset", "adam"],
}
REM = ["rem"]
SHARE = "0.26"  # of the device's memory: 36 GiB
LEAD = 0.8  # of its updates after which REM is joined by programs that must be compiled first
WORTH = 100  # seconds; with less left REM does not go on


def collect(asked, folder: Path, diary: Diary, until: float) -> None:
    player = Work(
        "log",
        [
            *("collect", f"atari/{asked.game}", "--preset", "dqn-nature", "--seeds", "0"),
            *("--steps", str(asked.steps), "--lanes", str(asked.lanes), "--checkpoint-seconds", "1000"),
            *("--evaluate-every", str(asked.steps // 5), "--evaluation-steps", "none"),
            *("--episodes", str(asked.episodes)),
            *("--keep-policies", "0", "--loggers", "jsonl", *asked.more.split()),
        ],
        folder,
        XLA_PYTHON_CLIENT_PREALLOCATE="false",
    )
    wait([player], until, folder)
    stop([player])
    diary.add("the log is recorded")


def learning(
    name: str, words: list[str], asked, folder: Path, *, precision: str, steps: int, **more: str
) -> Work:
    feed = more.pop("feed", "device")
    return Work(
        name,
        [
            *("train", words[0], str(folder / "log"), *words[1:], "--seeds", "0", "--precision", precision),
            *("--steps", str(steps), "--evaluate-every", str(asked.updates // 10), "--feed", feed),
            *("--evaluation-steps", "none", "--episodes", str(asked.episodes)),
            *("--keep-policies", "0", "--loggers", "jsonl", "--checkpoint-seconds", "120"),
        ],
        folder,
        otherwise=("--feed", "memory"),
        **more,
    )


def learn(asked, folder: Path, diary: Diary, until: float) -> None:
    cores = str(max(1, asked.cores // 2))
    on_device = {"XLA_PYTHON_CLIENT_MEM_FRACTION": asked.share or SHARE}

    def rem() -> Work:
        twice = 2 * asked.updates
        return learning(
            "rem", REM, asked, folder, precision="bf16", steps=twice, NPROC=str(asked.cores), **on_device
        )

    def other(name: str) -> Work:
        diary.add(f"{name} starts")
        return learning(
            name,
            AGENTS[name],
            asked,
            folder,
            precision=asked.precision,
            steps=asked.updates,
            NPROC=cores,
            **on_device,
        )

    first = rem()
    diary.add("rem starts")
    describe(folder / "log")
    wait([first], until, folder, lambda: first.evaluated() >= LEAD * asked.updates)
    diary.add(f"rem has {first.evaluated():,} updates; the next agents start")
    works = [other("qr_dqn")]
    wait([first], min(until, time.monotonic() + 12), folder)  # so that not all decode the log at once
    works.append(other("dqn_nature"))
    name, words = ("dqn_adam", AGENTS["dqn_adam"]) if asked.precision == "bf16" else ("rem", REM)
    check = learning(
        f"{name}_tf32",
        words,
        asked,
        folder,
        precision="tf32",
        steps=asked.updates,
        NPROC=cores,
        feed="memory",
        XLA_PYTHON_CLIENT_MEM_FRACTION="0.05",
    )
    works.append(check)
    wait([first, *works], until, folder, lambda: first.evaluated() >= asked.updates or not first.runs())
    stop([first])
    diary.add(f"rem has {first.evaluated():,} updates and stops")
    works.append(other("dqn_adam"))
    wait(works, until - WORTH, folder, lambda: not any(work.runs() for work in works if work is not check))
    if time.monotonic() < until - WORTH:
        diary.add("the agents have finished; rem goes on")
        works.append(rem())
    wait(works, until, folder)
    stop(works)
    diary.add("the end: " + ", ".join(f"{work.name} {work.evaluated():,}" for work in [first, *works]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=("collect", "learn"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--lanes", type=int, default=64)
    parser.add_argument("--steps", type=int, default=5_000_000, help="of the player")
    parser.add_argument("--updates", type=int, default=1_250_000, help="of each agent; evaluated ten times")
    parser.add_argument("--episodes", type=int, default=16, help="of each evaluation")
    parser.add_argument("--precision", default="bf16", help="of all agents but the check")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--share", default="", help=f"of the device's memory for each process [{SHARE}]")
    parser.add_argument("--until", type=float, default=1000)
    parser.add_argument("--more", default="", help="more options of `optimist collect`")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    diary, until = Diary(asked.folder / "diary.jsonl"), time.monotonic() + asked.until
    share_the_device()
    {"collect": collect, "learn": learn}[asked.stage](asked, asked.folder, diary, until)
    pack(asked.folder)


if __name__ == "__main__":
    main()
