"""Three rounds of collect and train on CartPole: a log that its policy grows, and one that random play grows.

    python rounds.py OUT [SEEDS]

Each seed has logs of its own. After each round a new agent learns from the whole log, and 20 episodes score
it. Writes returns.csv, online.csv (the policy before and after it went on online) and rounds.png into OUT.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call

import optimist
from optimist.studies.report.figures import save_png

GAME, ROUNDS, STEPS, UPDATES = "gym/CartPole-v1", 3, 2000, 3000
PLAY = {"steps": STEPS, "lanes": 4, "recipe": "small"}
AGENT = {
    "network.torso": "mlp",
    "optimizer.learning_rate": 1e-3,
    "optimizer.epsilon": 1e-8,
    "target_period": 200,
}
WAYS = {"its own policy": "C0", "random play": "C1"}


def random_log(out: Path, seed: int):
    return optimist.collect(GAME, agent="random", out=out, seeds=(seed,), **PLAY)


def trained(log: Path, out: Path, seed: int):
    """An agent that learned from the log, and the mean return of its last policy."""
    run = optimist.train(
        "dqn",
        log,
        preset="adam",
        recipe="small",
        options=AGENT,
        out=out,
        seeds=(seed,),
        steps=UPDATES,
        evaluate_every=UPDATES,
        episodes=20,
    )
    return run, float(np.mean([episode.score for episode in run.episodes()]))


def write_online(out: Path, scores: list[list[float]]) -> None:
    """The mean return of each offline policy, and of the same agent after it went on online for a round."""
    with open(out / "online.csv", "w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["seed", "round", "before", "after"])
        for seed, before in enumerate(scores):
            for number, score in enumerate(before):
                agent = out / "work" / "its-own-policy" / str(seed) / f"more-{number}" / "agent"
                after = np.mean([episode.score for episode in optimist.load(agent).evaluate(20)])
                table.writerow([seed, number, round(score, 2), round(float(after), 2)])


def rounds(way: str, folder: Path, seed: int) -> list[float]:
    """The return after 0, 1, ... rounds of growth."""
    log, found = folder / "log", list[float]()
    random_log(log, seed)
    for number in range(ROUNDS + 1):
        run, score = trained(log, folder / f"run-{number}", seed)
        found.append(score)
        print(way, "seed", seed, "round", number, score, flush=True)
        more = folder / f"more-{number}"
        if way == "random play":
            grown = random_log(more, 1000 * (number + 1) + seed)
        else:
            grown = optimist.collect(
                GAME, start_from=run.path, out=more, mix=0.5, epsilon=0.1, warm_up=0, **PLAY
            )
        grown.save(log, append=True)
    return found


def draw(scores: dict[str, list[list[float]]], out: Path) -> None:
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot(xlabel="rounds of growth, 2,000 steps each", ylabel="mean return of the policy")
    for way, colour in WAYS.items():
        for line in scores[way]:
            axes.plot(range(ROUNDS + 1), line, color=colour, alpha=0.3, linewidth=1)
        axes.plot(
            range(ROUNDS + 1), np.mean(scores[way], axis=0), color=colour, label=f"the log grows by {way}"
        )
    axes.set_xticks(range(ROUNDS + 1))
    axes.legend(frameon=False)
    save_png(figure, out / "rounds.png")


def main(out: Path, seeds: int = 3) -> None:
    out.mkdir(parents=True, exist_ok=True)
    scores: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    with open(out / "returns.csv", "w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["grown_by", "seed", "round", "return"])
        for seed in range(seeds):
            for way in WAYS:
                scores[way].append(rounds(way, out / "work" / way.replace(" ", "-") / str(seed), seed))
                table.writerows([way, seed, number, score] for number, score in enumerate(scores[way][-1]))
                stream.flush()
    write_online(out, scores["its own policy"])
    draw(scores, out)


if __name__ == "__main__":
    call(__doc__, main)
