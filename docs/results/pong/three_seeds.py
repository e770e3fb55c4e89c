"""Three players of one Atari game are logged; three agents then learn offline, each seed from its own log.

    python docs/results/pong/three_seeds.py collect FOLDER [--until 600]
    python docs/results/pong/three_seeds.py learn FOLDER [--until 700]

The three players are one program of three seeds, and so is each agent; the agents learn at the same time.
The clock decides: what runs is asked to stop `--until` seconds after the start. What has been evaluated by
then is in FOLDER/found.tar.gz, which is written anew every half minute.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from work import Diary, Work, describe, pack, share_the_device, stop, wait

HEADS = 200
AGENTS = {
    "dqn_adam": ["dqn", "--preset", "adam"],
    "rem": ["rem", "--preset", "paper"],
    "rem_head_epsilon": ["rem", "--preset", "paper", "--optimizer.head-epsilon", str(0.01 / 32 / HEADS)],
}
SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def players(asked) -> list[Work]:
    words = [
        *("collect", f"atari/{asked.game}", "--preset", "dqn-nature", "--seeds", asked.seeds),
        *("--steps", str(asked.steps), "--lanes", asked.lanes, "--precision", asked.precision),
        *("--evaluate-every", str(asked.steps // 4), "--evaluation-steps", "none"),
        *("--episodes", asked.episodes, "--keep-policies", "0", "--checkpoint-seconds", "1000"),
        *("--loggers", "jsonl", *asked.more.split()),
    ]
    return [Work("log", words, asked.folder, **SHARED)]


def learners(asked) -> list[Work]:
    def words(agent: str, *preset: str) -> list[str]:
        return [
            *("train", agent, str(asked.folder / "log"), *preset, "--seeds", asked.seeds),
            *("--data-per-seed", "own", "--steps", asked.updates, "--evaluate-every", asked.evaluate_every),
            *("--evaluation-steps", "none", "--episodes", asked.episodes, "--precision", asked.precision),
            *("--feed", asked.feed, "--keep-policies", "0", "--loggers", "jsonl", *asked.more.split()),
        ]

    return [
        Work(name, words(*agent), asked.folder, otherwise=("--feed", "memory"), **SHARED)
        for name, agent in AGENTS.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=("collect", "learn"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--lanes", default="64", help="of each player")
    parser.add_argument("--steps", type=int, default=1_200_000, help="of each player")
    parser.add_argument("--updates", default="1250000", help="of each seed of an agent")
    parser.add_argument("--evaluate-every", default="62500")
    parser.add_argument("--episodes", default="16", help="of each evaluation")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--feed", default="packed")
    parser.add_argument("--until", type=float, default=600)
    parser.add_argument("--more", default="", help="more options of the command")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    diary, until = Diary(asked.folder / f"{asked.stage}.jsonl"), time.monotonic() + asked.until
    share_the_device()
    works = {"collect": players, "learn": learners}[asked.stage](asked)
    diary.add(f"{asked.stage} starts")
    if asked.stage == "learn":
        describe(asked.folder / "log")
    wait(works, until, asked.folder)
    diary.add(", ".join(f"{work.name} {work.learned():,}" for work in works))
    stop(works)
    pack(asked.folder)
    diary.add("packed")


if __name__ == "__main__":
    main()
