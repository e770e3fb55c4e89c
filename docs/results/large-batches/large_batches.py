"""Does a larger minibatch reach a return sooner, and how must rate, epsilon and target period change with it?

    python docs/results/large-batches/large_batches.py collect FOLDER
    python docs/results/large-batches/large_batches.py learn FOLDER [--until 400]
    python docs/results/large-batches/large_batches.py learn FOLDER --scale atari --log LOGS/Pong/log
    python docs/results/large-batches/large_batches.py rates FOLDER

Seed i learns from the log of player i: with 32 transitions in a minibatch as the recipe says, and with k
times as many by one of four rules. The control, `32:root@256`, has 32 transitions, and rate and period of
`256:root`. An arm makes 1/sqrt(k) of the updates, so a larger batch sees more transitions. Several arms share
the device, so their own clocks say nothing: `rates` times each batch size alone. A run that is not done at
`--until` seconds is asked to stop; the same command continues it. What has been evaluated is in
FOLDER/found.tar.gz.
"""

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from work import Diary, Work, pack, share_the_device, stop, wait

BASE = 32
RULES = {  # the powers of k that multiply Adam's rate, its epsilon, and the period of the target network
    "plain": (0.0, 0.0, 0.0),
    "root": (0.5, 0.0, -1.0),
    "root-epsilon": (0.5, -0.5, -1.0),
    "linear": (1.0, 0.0, -1.0),
}
SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "NPROC": "3"}
ARMS = "32:plain," + ",".join(
    f"{batch}:{rule}" for rule in ("root-epsilon", "root", "linear", "plain") for batch in (4096, 1024, 256)
)


class Scale(NamedTuple):
    """The settings of DQN (Adam) at a batch of 32."""

    network: str
    rate: float
    period: int
    updates: int
    evaluations: int
    words: tuple[str, ...]
    epsilon: float = 0.01 / 32


SCALES = {
    "mini": Scale(
        "minatar", 2.5e-4, 250, 250_000, 25, ("--recipe", "mini", "--episodes", "100", "--feed", "device")
    ),
    "atari": Scale(
        *("nature", 5e-5, 2_000, 375_000, 6),
        ("--precision", "bf16", "--episodes", "16", "--evaluation-steps", "none", "--feed", "packed"),
    ),
}


def options(scale: Scale, batch: int, rule: str, updates: int) -> list[str]:
    """What an arm says of itself."""
    rule, _, like = rule.partition("@")
    k = int(like or batch) / BASE
    rate, epsilon, period = (
        value * k**power
        for value, power in zip((scale.rate, scale.epsilon, scale.period), RULES[rule], strict=True)
    )
    every = max(1, round(updates / (batch / BASE) ** 0.5 / scale.evaluations))
    return [
        *("--batch", str(batch), "--optimizer.learning-rate", f"{rate:.6g}"),
        *("--optimizer.epsilon", f"{epsilon:.6g}", "--target-period", str(max(1, round(period)))),
        *("--steps", str(every * scale.evaluations), "--evaluate-every", str(every)),
    ]


def collect(asked, until: float, diary: Diary) -> None:
    works = [
        Work(
            f"log-{game}",
            [
                *("collect", f"minatar_jax/{game}", "--preset", "dqn-nature", "--recipe", "mini"),
                *("--seeds", asked.seeds, "--loggers", "jsonl", "--keep-policies", "0", *asked.more.split()),
            ],
            asked.folder,
            **SHARED,
        )
        for game in asked.games.split(",")
    ]
    wait(works, until, asked.folder)
    stop(works)


def learn(asked, until: float, diary: Diary) -> None:
    scale = SCALES[asked.scale]
    logs = {game: asked.folder / f"log-{game}" for game in asked.games.split(",")}
    if asked.log:
        logs = {asked.log.parent.name.lower(): asked.log}  # as own_logs.py has it: FOLDER/Pong/log
    arms = [(game, *arm.split(":")) for arm in asked.arms.split(",") for game in logs]
    begun: list[Work] = []

    def running() -> list[Work]:
        return [work for work in begun if work.runs()]

    for game, batch, rule in arms:
        wait(running(), until, asked.folder, lambda: len(running()) < asked.workers)
        if time.monotonic() > until:
            break
        words = [
            *("train", "dqn", str(logs[game]), "--preset", "adam", *scale.words, "--seeds", asked.seeds),
            *("--data-per-seed", "own", "--keep-policies", "0", "--loggers", "jsonl"),
            *options(scale, int(batch), rule, asked.updates or scale.updates),
        ]
        begun.append(Work(f"{game}-{batch}-{rule}", words, asked.folder, **SHARED))
        diary.add(f"{begun[-1].name} starts")
    wait(running(), until, asked.folder)
    stop(begun)
    diary.add(", ".join(f"{work.name} {work.evaluated():,}" for work in begun))


def rates(asked, until: float, diary: Diary) -> None:
    """Updates per second of one seed by batch size, nothing else on the device; the median of five rounds."""
    import statistics

    from optimist.agents import preset
    from optimist.data.sampling import Sampler
    from optimist.studies.bench import random_log, updating
    from optimist.training.feeding import feed_of
    from optimist.training.learner import Learner

    with (asked.folder / "rates.csv").open("a", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["scale", "precision", "batch", "updates_per_second", "lowest", "highest"])
        for name, precision in (("mini", "tf32"), ("atari", "bf16")):
            log = random_log(SCALES[name].network)
            learner = Learner(preset("dqn", "adam"), log.spec, precision=precision)
            for batch in (32, 64, 128, 256, 512, 1024, 2048, 4096):
                count = max(8, (100_000 if name == "mini" else 20_000) // batch)
                do = updating(learner, feed_of([Sampler(log, batch=batch, seed=0)], "device"), 1, count)
                do()
                found = []
                for _ in range(5):
                    start, made = time.perf_counter(), 0
                    while time.perf_counter() - start < 0.3:
                        made += do()
                    found.append(made / (time.perf_counter() - start))
                row = (f"{rate:.1f}" for rate in (statistics.median(found), min(found), max(found)))
                out.writerow([name, precision, batch, *row])
                file.flush()
                diary.add(f"{name}, batch {batch}: {statistics.median(found):,.0f} updates/s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=("collect", "learn", "rates"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", choices=tuple(SCALES), default="mini")
    parser.add_argument("--games", default="asterix,breakout")
    parser.add_argument("--log", type=Path, help="a log that is there already")
    parser.add_argument("--arms", default=ARMS, help="batch:rule, in the order in which they begin")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--updates", type=int, help="of the batch of 32")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--until", type=float, default=400)
    parser.add_argument("--more", default="", help="more options of `optimist collect`")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    diary, until = Diary(asked.folder / "diary.jsonl"), time.monotonic() + asked.until
    if asked.stage != "rates":
        share_the_device()
    diary.add(f"{asked.stage} starts")
    {"collect": collect, "learn": learn, "rates": rates}[asked.stage](asked, until, diary)
    pack(asked.folder)
    diary.add("packed")


if __name__ == "__main__":
    main()
