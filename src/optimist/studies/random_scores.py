"""What playing at random scores: the paper's protocol, with sticky actions, for any number of games.

The released code's random agent is evaluated for 125,000 steps by full episodes. Public tables of random
scores were made without sticky actions and with no-op starts, so they do not fit this protocol.
"""

import csv
import multiprocessing
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from optimist import envs
from optimist.data.disk.files import make_folder, write_whole
from optimist.envs._processes import isolated
from optimist.errors import UsageError, did_you_mean
from optimist.training.evaluation import Series, play_out

LANES = 8  # per game, all in one process, which has one core


@dataclass(frozen=True)
class RandomScore:
    """One game's row."""

    game: str
    mean: float
    standard_deviation: float  # over episodes
    episodes: int
    steps: int
    seed: int
    rom_md5: str
    ale_py: str


def random_score(game: str, steps: int, seed: int) -> RandomScore:
    """Full episodes of uniformly random play until so many steps are done."""
    play = envs.make(f"atari/{game}", lanes=LANES, seed=seed, threads=1)
    random = np.random.default_rng([seed, *game.encode()])
    (episodes,) = play_out(
        play, lambda *_: random.integers(play.spec.actions, size=play.lanes), [Series(0, steps)]
    )
    scores, lengths = np.array(episodes).T
    versions = play.versions()
    return RandomScore(
        game=game,
        mean=float(scores.mean()),
        standard_deviation=float(scores.std(ddof=1)) if len(scores) > 1 else 0.0,
        episodes=len(scores),
        steps=int(lengths.sum()),
        seed=seed,
        rom_md5=versions["rom_md5"],
        ale_py=versions["ale_py"],
    )


@dataclass(frozen=True)
class RandomStudy:
    """Random play, scored"""

    games: Annotated[str, "all, or some of them as Pong,Breakout"] = "all"
    steps: Annotated[int, "steps per game; the last episode is played to its end"] = 125_000
    seed: Annotated[int, "seed of the games and of the actions"] = 0
    processes: Annotated[int, "games played at once; 0: as many as there are cores"] = 0

    def chosen(self) -> list[str]:
        known = [name.removeprefix("atari/") for name in envs.available() if name.startswith("atari/")]
        chosen = known if self.games == "all" else self.games.split(",")
        for game in chosen:
            if game not in known:
                raise UsageError(f'there is no game "{game}": {did_you_mean(game, known)}')
        return chosen


def run(study: RandomStudy, table: Path) -> list[RandomScore]:
    """One row per game, written as soon as it is known; games that are there already are not played again."""
    rows = {row.game: row for row in read(table)} if table.exists() else {}
    for row in rows.values():
        if row.seed != study.seed or row.steps < study.steps:
            raise UsageError(f"{table} was made with another --seed or --steps: choose another --out")
    make_folder(table.parent)
    missing = [game for game in study.chosen() if game not in rows]
    # Not forked: what the parent has loaded must not be shared.
    processes = study.processes or len(os.sched_getaffinity(0))
    with isolated(), multiprocessing.get_context("spawn").Pool(processes) as pool:
        work = [(game, study.steps, study.seed) for game in missing]
        for row in pool.imap_unordered(_score, work):
            rows[row.game] = row
            write_whole(table, _text(rows.values()).encode())
            print(f"{row.game}: {row.mean:,.1f} over {row.episodes} episodes", flush=True)
    return [rows[game] for game in study.chosen()]


def _score(work: tuple[str, int, int]) -> RandomScore:
    return random_score(*work)


def _text(rows) -> str:
    names = [field.name for field in fields(RandomScore)]
    ordered = sorted(rows, key=lambda row: row.game)
    lines = [names, *([str(value) for value in asdict(row).values()] for row in ordered)]
    return "".join(",".join(line) + "\n" for line in lines)


def read(table: Path) -> list[RandomScore]:
    """The rows of such a table."""
    kinds: dict[str, Any] = {field.name: field.type for field in fields(RandomScore)}
    with open(table) as stream:
        rows = list(csv.DictReader(stream))
    return [RandomScore(**{name: kinds[name](text) for name, text in row.items()}) for row in rows]
