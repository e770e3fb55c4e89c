"""The CSV files of a page about Atari, from the folder of its runs or its unpacked found.tar.gz.

    python docs/results/gathering.py FOLDER docs/results/pong

FOLDER is that of one game, or has a folder for each game. Games and seeds accumulate: the rows of a run that
is in FOLDER replace those of the same game, agent and seed; all others stay.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from command import call, refuse

NAMES = {  # of the runs' folders, and on the page
    "dqn_nature": "DQN (Nature)",
    "dqn_adam": "DQN (Adam)",
    "qr_dqn": "QR-DQN",
    "rem": "REM",
    "rem_head_epsilon": "REM, head epsilon / 200",
    "dqn_adam_tf32": "DQN (Adam), tf32",
    "dqn_adam_float32": "DQN (Adam), float32",
    "rem_tf32": "REM, tf32",
}
SHARES = ("step_share_heads", "step_share_torso")
RUN = ("game", "agent", "seed")  # the columns that name a run


def games(folder: Path) -> Iterator[tuple[str, Path, dict]]:
    """Name, folder and card of each game's log."""
    for log in sorted(folder.glob("log")) or sorted(folder.glob("*/log")):
        card = json.loads(log.with_suffix(".json").read_text())
        yield card["provenance"]["environment"], log.parent, card


def lines(path: Path) -> list[dict]:
    """The figures of a run; a last line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found


def episodes_of(run: Path) -> dict[tuple[int, int], list[tuple[float, int]]]:
    """{(seed, step): [(return, length), ...]} of a run's evaluations."""
    found = defaultdict(list)
    if (run / "episodes.csv").exists():
        with (run / "episodes.csv").open() as file:
            for row in csv.DictReader(file):
                found[int(row["seed"]), int(row["step"])].append((float(row["return"]), int(row["length"])))
    return dict(sorted(found.items()))


def write(path: Path, heads: list[str], rows: list[list]) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(heads)
        out.writerows(rows)


def add(path: Path, heads: list[str], rows: list[list]) -> None:
    """Write the rows, if there are any, beside those of other runs that the file has."""
    if not rows:
        return
    names = [place for place, head in enumerate(heads) if head in RUN]

    def run(row: list) -> tuple[str, ...]:
        return tuple(str(row[place]) for place in names)

    new, kept = {run(row) for row in rows}, []
    if path.exists():
        with path.open() as file:
            before, *old = csv.reader(file)
        if before != heads:
            sys.exit(f"{path} has the columns {', '.join(before)} and not {', '.join(heads)}")
        kept = [row for row in old if run(row) not in new]
    write(path, heads, [*kept, *rows])


def write_runs(game: str, folder: Path, out: Path) -> None:
    """Episodes, scores, and shares of an Adam step after 250 and 1,000 updates and at every evaluation."""
    episodes, scores, shares = [], [], []
    for short, name in NAMES.items():
        curve = episodes_of(folder / short)
        for (seed, step), each in curve.items():
            episodes += [[game, name, seed, step, number, *pair] for number, pair in enumerate(each)]
            scores.append([game, name, seed, step, sum(score for score, _ in each) / len(each)])
        evaluated = {step for _, step in curve}
        shares += [
            [
                *(game, name, row.get("seed", 0), row["step"]),
                *(f"{row[share]:.5f}" if share in row else "" for share in SHARES),
                row.get("estimate", ""),
            ]
            for row in lines(folder / short / "metrics.jsonl")
            if row["step"] in (250, 1_000, *evaluated)
        ]
    add(out / "episodes.csv", ["game", "agent", "seed", "step", "episode", "return", "length"], episodes)
    add(out / "scores.csv", ["game", "agent", "seed", "step", "score"], scores)
    add(out / "step-shares.csv", ["game", "agent", "seed", "step", "heads", "torso", "estimate"], shares)


def write_players(game: str, folder: Path, out: Path) -> None:
    """The players' returns while they played, and the episodes of their evaluations."""
    play = folder / "log" / "agent"
    rows = [
        [
            *(game, row.get("seed", 0), row["step"], f"{row['play/return']:.3f}", f"{row['epsilon']:.4f}"),
            round(row["steps_per_second"]),
        ]
        for row in lines(play / "metrics.jsonl")
        if "play/return" in row
    ]
    evaluations = [
        [game, *moment, number, *pair]
        for moment, each in episodes_of(play).items()
        for number, pair in enumerate(each)
    ]
    add(out / "players.csv", ["game", "seed", "step", "return", "epsilon", "steps_per_second"], rows)
    add(out / "player-episodes.csv", ["game", "seed", "step", "episode", "return", "length"], evaluations)


def write_card(game: str, card: dict, out: Path) -> None:
    """logs.json: the cards of all logs, by game and by the seeds of the players."""
    path, seeds = out / "logs.json", ",".join(map(str, card["provenance"]["seeds"]))
    known = json.loads(path.read_text()) if path.exists() else {}
    known.setdefault(game, {})[seeds] = card
    path.write_text(json.dumps(known, indent=2) + "\n")


def write_progress(folder: Path, out: Path) -> float:
    """The newest step of every run, second by second; the clock when the first one was written."""
    with (folder / "progress.csv").open() as file:
        rows = [row for row in csv.reader(file) if len(row) == 3]
    began = float(rows[0][0])
    progress = [[f"{float(clock) - began:.1f}", name, step] for clock, name, step in rows]
    write(out / "progress.csv", ["seconds", "run", "step"], progress)
    return began


def write_device(folder: Path, out: Path, began: float) -> None:
    """Percent busy and MiB used, second by second, if FOLDER/device.txt was written meanwhile by
    nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used --format=csv,noheader,nounits -l 1"""
    found = []
    for line in (folder / "device.txt").read_text().splitlines() if (folder / "device.txt").exists() else ():
        clock, busy, used, *_ = (word.strip() for word in line.split(","))
        seconds = datetime.strptime(clock, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp() - began
        found.append([f"{seconds:.1f}", busy, used])
    if found:
        write(out / "device.csv", ["seconds", "busy", "mib"], found)


def main(folder: Path, out: Path) -> None:
    if not (folder / "progress.csv").exists():
        refuse(f"{folder} has no progress.csv: name the folder of the runs, or the unpacked found.tar.gz")
    if not out.is_dir():
        refuse(f"{out} is not a folder: name that of the page, or create it")
    for game, place, card in games(folder):
        write_runs(game, place, out)
        write_players(game, place, out)
        write_card(game, card, out)
    write_device(folder, out, write_progress(folder, out))


if __name__ == "__main__":
    call(__doc__, main)
