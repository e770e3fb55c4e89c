"""Five players of one Atari game are logged; agents then learn offline, each seed from its own log.

    python docs/results/pong/own_logs.py collect FOLDER [--until 460]
    python docs/results/pong/own_logs.py learn FOLDER [--until 1250]

The five players are one program of five seeds, and so is each agent. The first agent learns alone for
`--alone` seconds after its first updates: a rate that lasts. Then the others join it. The clock decides: what
runs is asked to stop `--until` seconds after the start. What has been evaluated by then is in
FOLDER/found.tar.gz, which is written anew every half minute. For one log that ends early, as in Figure 7:

    ... collect FOLDER --game Breakout --seeds 0 --steps 5000000
    ... learn FOLDER --seeds 0 --agents rem:2500000,qr_dqn:1250000,dqn_nature:1250000,dqn_adam:1250000
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from work import Diary, Work, describe, pack, share_the_device, stop, wait

HEADS = 200
ADAM = ["dqn", "--preset", "adam"]
REM = ["rem", "--preset", "paper"]
AGENTS = {
    "dqn_nature": ["dqn", "--preset", "nature"],
    "dqn_adam": [*ADAM],
    "dqn_adam_float32": [*ADAM, "--precision", "float32"],
    "qr_dqn": ["qr_dqn", "--preset", "paper"],
    "rem": [*REM],
    "rem_head_epsilon": [*REM, "--optimizer.head-epsilon", str(0.01 / 32 / HEADS)],
}
LEARNED = "rem:750000,dqn_adam_float32:375000,dqn_adam:375000,rem_head_epsilon:750000"
SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def player(asked) -> Work:
    words = [
        *("collect", f"atari/{asked.game}", "--preset", "dqn-nature", "--seeds", asked.seeds),
        *("--steps", str(asked.steps), "--lanes", asked.lanes, "--precision", "bf16"),
        *("--evaluate-every", str(asked.steps // 2), "--evaluation-steps", "none"),
        *("--episodes", asked.episodes, "--keep-policies", "0", "--checkpoint-seconds", "1000"),
        *("--loggers", "jsonl", *asked.more.split()),
    ]
    return Work("log", words, asked.folder, **SHARED)


def learner(name: str, updates: int, asked) -> Work:
    agent, *options = AGENTS[name]
    words = [
        *("train", agent, str(asked.folder / "log"), "--precision", "bf16", *options),
        *("--seeds", asked.seeds, "--data-per-seed", "own", "--steps", str(updates)),
        *("--evaluate-every", str(updates // asked.evaluations), "--evaluation-steps", "none"),
        *("--episodes", asked.episodes, "--feed", asked.feed, "--keep-policies", "0", "--loggers", "jsonl"),
        *("--checkpoint-seconds", "300", *asked.more.split()),
    ]
    return Work(name, words, asked.folder, otherwise=("--feed", "memory"), **SHARED)


def collect(asked, diary: Diary, until: float) -> list[Work]:
    players = player(asked)
    wait([players], until, asked.folder)
    return [players]


def learn(asked, diary: Diary, until: float) -> list[Work]:
    updates = {name: int(count) for name, count in (each.split(":") for each in asked.agents.split(","))}
    first, *others = updates
    works = [learner(first, updates[first], asked)]
    describe(asked.folder / "log")
    wait(works, until, asked.folder, lambda: works[0].learned() > 0)
    diary.add(f"{first} learns")
    wait(works, min(until, time.monotonic() + asked.alone), asked.folder)
    for name in others:
        diary.add(f"{first} {works[0].learned():,}; {name} starts")
        works.append(learner(name, updates[name], asked))
        wait(works, min(until, time.monotonic() + asked.apart), asked.folder)  # not all read the log at once
    wait(works, until, asked.folder)
    return works


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=("collect", "learn"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--agents", default=LEARNED, help=f"and the updates of each; of {', '.join(AGENTS)}")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--lanes", default="64", help="of each player")
    parser.add_argument("--steps", type=int, default=1_000_000, help="of each player")
    parser.add_argument("--evaluations", type=int, default=6, help="of each agent")
    parser.add_argument("--episodes", default="16", help="of each evaluation")
    parser.add_argument("--feed", default="packed")
    parser.add_argument("--alone", type=float, default=300, help="seconds in which the first agent is alone")
    parser.add_argument("--apart", type=float, default=12, help="seconds between the starts of the others")
    parser.add_argument("--until", type=float, default=600)
    parser.add_argument("--more", default="", help="more options of the command")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    diary, until = Diary(asked.folder / f"{asked.stage}.jsonl"), time.monotonic() + asked.until
    share_the_device()
    diary.add(f"{asked.stage} starts")
    works = {"collect": collect, "learn": learn}[asked.stage](asked, diary, until)
    diary.add(", ".join(f"{work.name} {work.learned():,}" for work in works))
    stop(works)
    pack(asked.folder)
    diary.add("packed")


if __name__ == "__main__":
    main()
