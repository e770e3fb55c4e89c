"""Players of Atari games are logged; then agents learn offline, each seed from the log of its own player.

    python docs/results/own_logs.py FOLDER --games Breakout,Qbert --seeds 0 --steps 5000000 --until 1600

All games are played at once. When the log of a game is complete, its agents start, one every `--apart`
seconds. The seeds of a player are one program, and so are those of an agent. The clock decides: a player that
is not done `--collected-by` seconds after the start is asked to stop, and so is everything that runs after
`--until` seconds. What has been evaluated by then is in FOLDER/found.tar.gz, which is written anew every half
minute. The same command continues in the same folder.

With `--alone 300` the first agent learns alone for 300 seconds after its first updates: a rate that lasts.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
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
LEARNED = "rem:1250000,qr_dqn:1250000,dqn_nature:1250000,dqn_adam:1250000"
SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def player(game: str, asked) -> Work:
    words = [
        *("collect", f"atari/{game}", "--preset", "dqn-nature", "--seeds", asked.seeds),
        *("--steps", str(asked.steps), "--lanes", asked.lanes, "--precision", "bf16"),
        *("--evaluate-every", str(asked.steps // asked.player_evaluations), "--evaluation-steps", "none"),
        *("--episodes", asked.episodes, "--keep-policies", "0", "--checkpoint-seconds", "240"),
        *("--loggers", "jsonl", *asked.more_of_players.split()),
    ]
    cores = min(asked.cores, asked.cores // len(asked.games) + 2)  # two of them are not for emulators
    return Work(f"{game}/log", words, asked.folder, NPROC=str(cores), **SHARED)


def learner(game: str, name: str, asked) -> Work:
    (agent, *options), updates = AGENTS[name], asked.agents[name]
    words = [
        *("train", agent, str(asked.folder / game / "log"), "--precision", "bf16", *options),
        *("--seeds", asked.seeds, "--data-per-seed", "own", "--steps", str(updates)),
        *("--evaluate-every", str(updates // asked.evaluations), "--evaluation-steps", "none"),
        *("--episodes", asked.episodes, "--evaluation", asked.evaluation, "--feed", asked.feed),
        *("--keep-policies", "0", "--loggers", "jsonl", "--checkpoint-seconds", "300"),
        *asked.more.split(),
    ]
    cores = max(1, asked.cores // 2)  # a few agents play at the same time
    return Work(
        f"{game}/{name}", words, asked.folder, otherwise=("--feed", "memory"), NPROC=str(cores), **SHARED
    )


def play_and_learn(asked, diary: Diary, until: float, collected_by: float) -> list[Work]:
    """The works that are left at the end."""
    players = {game: player(game, asked) for game in asked.games}
    works, due = list(players.values()), []

    def a_log_is_complete() -> bool:
        return not due and not all([each.runs() for each in players.values()])

    while (players or due) and time.monotonic() < until:
        wait(works, min(until, _next(asked, due, collected_by)), asked.folder, a_log_is_complete)
        if time.monotonic() >= collected_by:
            stop(list(players.values()))
        for game in [game for game, each in players.items() if not each.runs()]:
            diary.add(f"{game}: {players[game].learned():,} steps are logged")
            works.remove(players.pop(game))
            due = sorted([*due, *((number, game, name) for number, name in enumerate(asked.agents))])
        if due:
            _, game, name = due.pop(0)
            diary.add(f"{game}: {name} starts")
            works.append(learner(game, name, asked))
            if name == next(iter(asked.agents)):
                describe(asked.folder / game / "log")
                _alone(works, asked, diary, until)
    wait(works, until, asked.folder)
    return works


def _next(asked, due: list, collected_by: float) -> float:
    """When the next agent may start (not all read the log at once), or when the players have to stop."""
    now = time.monotonic()
    return now + asked.apart if due else max(collected_by, now)


def _alone(works: list[Work], asked, diary: Diary, until: float) -> None:
    if asked.alone:
        wait(works, until, asked.folder, lambda: works[-1].learned() > 0)
        diary.add(f"{works[-1].name} learns")
        wait(works, min(until, time.monotonic() + asked.alone), asked.folder)
        diary.add(f"{works[-1].name} has {works[-1].learned():,} updates")


def counts(text: str) -> dict[str, int]:
    """A name and a number of updates for each agent."""
    pairs = (each.split(":") for each in text.split(","))
    return {name: int(updates) for name, updates in pairs}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", type=lambda text: text.split(","), default=["Pong"])
    parser.add_argument(
        "--agents", type=counts, default=LEARNED, help=f"and the updates of each; of {', '.join(AGENTS)}"
    )
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--lanes", default="64", help="of each player")
    parser.add_argument("--steps", type=int, default=5_000_000, help="of each player")
    parser.add_argument("--player-evaluations", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=10, help="of each agent")
    parser.add_argument("--episodes", default="16", help="of each evaluation")
    parser.add_argument("--evaluation", default="beside", help="wait, or beside: a second process plays")
    parser.add_argument("--feed", default="packed")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--alone", type=float, default=0, help="seconds in which the first agent is alone")
    parser.add_argument("--apart", type=float, default=10, help="seconds between the starts of two agents")
    parser.add_argument("--collected-by", type=float, default=740, help="seconds")
    parser.add_argument("--until", type=float, default=1600, help="seconds")
    parser.add_argument("--more", default="", help="more options of `optimist train`")
    parser.add_argument("--more-of-players", default="", help="more options of `optimist collect`")
    asked = parser.parse_args()
    for game in asked.games:
        (asked.folder / game).mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    diary = Diary(asked.folder / "diary.jsonl")
    share_the_device()
    diary.add(f"{', '.join(asked.games)}: the players start")
    works = play_and_learn(asked, diary, began + asked.until, began + asked.collected_by)
    diary.add(", ".join(f"{work.name} {work.learned():,}" for work in works))
    stop(works)
    pack(asked.folder)
    diary.add("packed")


if __name__ == "__main__":
    main()
