"""Which setting keeps BCQ's values in range: the logs of six players under several settings, compared by log.

A run has diverged when its critics' loss, a
mean over 250 updates, is above 10,000 in three rows of `critics.csv` in a row; stable runs have 150 to 350.
The limit was chosen before these runs, by those of `final-buffer`. Bounds are 95% bootstrap intervals over
logs (library.scores), and settings that share logs are compared in pairs.
"""

from collections import defaultdict

import numpy as np
from matplotlib.figure import Figure
from results.library.scores import interval, read, tables

from optimist.studies.scores.statistics import mean

PLAIN = "plain"
SETTINGS = (PLAIN, "highest precision", "caution 0.5", "caution 1", "target limit", "players of 2019")
OTHER_LOGS = ("players of 2019",)
LARGEST_LOSS, IN_A_ROW = 10_000, 3
UNTIL = 48_000  # the last update that all settings but one have reached
HEADS = ("setting", "seed", "measure", "value", "low", "high")
SHOWN = ("last", "best", "cross-chosen best", "mean of all")


def curves(name, column):
    """{setting: {seed: (steps, values)}} of one column."""
    found = defaultdict(lambda: defaultdict(list))
    for row in read(f"bcq-divergence/{name}"):
        if row[column]:
            found[row["setting"]][int(row["seed"])].append((int(row["step"]), float(row[column])))
    return {
        setting: {seed: np.array(sorted(pairs)).T for seed, pairs in seeds.items()}
        for setting, seeds in found.items()
    }


def diverged_at(steps, losses):
    """The update of the first of three rows in a row with too large losses; NaN if there are none."""
    high = losses > LARGEST_LOSS
    runs = [start for start in range(len(high) - IN_A_ROW + 1) if high[start : start + IN_A_ROW].all()]
    return steps[runs[0]] if runs else np.nan


def returns(until):
    """{setting: (seeds, evaluations)} of the evaluations up to an update; none if it has none."""
    found = {}
    for setting, seeds in curves("scores.csv", "score").items():
        rows = [values[steps <= until] for _, (steps, values) in sorted(seeds.items())]
        found[setting] = np.array(rows)
    return found


def rows():
    """(setting, seed or "all", measure, value, low, high), at update UNTIL, or at the end of a setting that
    did not get so far."""
    imitators, losses, estimates = (
        curves("critics.csv", name) for name in ("loss_vae", "loss_critic", "estimate")
    )
    played = {setting: runs for setting, runs in returns(UNTIL).items() if runs.size}
    for setting, seeds in losses.items():
        until = min(UNTIL, *(steps[-1] for steps, _ in seeds.values()))
        yield setting, "all", "read at update", until, "", ""
        gone = {seed: diverged_at(*curve) for seed, curve in seeds.items()}
        yield (
            setting,
            "all",
            f"diverged of {len(seeds)}",
            sum(each <= until for each in gone.values()),
            "",
            "",
        )
        for place, seed in enumerate(sorted(seeds)):
            yield setting, seed, "diverged at", gone[seed], "", ""
            for name, part in (("imitator", imitators), ("critics", losses), ("estimate", estimates)):
                steps, values = part[setting][seed]
                yield setting, seed, name, values[np.searchsorted(steps, until)], "", ""
            if setting in played:
                yield setting, seed, "last return", played[setting][place, -1], "", ""
    for setting, runs in played.items():
        for name in SHOWN:
            mine, plain = (tables(name, {"": each}) for each in (runs, played[PLAIN]))
            yield setting, "all", name, *interval(mine, statistic=mean)
            if setting != PLAIN and setting not in OTHER_LOGS:
                yield f"{setting} minus {PLAIN}", "all", name, *interval(mine, plain, statistic=mean)


def lines():
    for *words, value, low, high in rows():
        yield [*words, *(f"{each:.6g}" if each != "" else "" for each in (value, low, high))]


def draw():
    parts = [curves("critics.csv", name) for name in ("loss_vae", "loss_critic", "estimate")]
    settings = [label for label in SETTINGS if label in parts[0]]
    figure = Figure(figsize=(2.5 * len(settings), 6.4), layout="tight")
    axes = figure.subplots(3, len(settings), sharex=True, sharey="row")
    for column, setting in enumerate(settings):
        for row, part in enumerate(parts):
            for place, (seed, (steps, values)) in enumerate(sorted(part[setting].items())):
                axes[row, column].plot(
                    steps / 1000, values, color=f"C{place}", linewidth=1, label=f"player {seed}"
                )
        axes[0, column].set_title(setting, fontsize=10)
        axes[0, column].set_ylim(0.14, 0.34)
        axes[1, column].set_yscale("log")
        axes[1, column].axhline(LARGEST_LOSS, color="black", linestyle=":", linewidth=0.8)
        axes[2, column].set_xlabel("thousand updates", fontsize=8)
    for row, name in enumerate(("loss of the imitator", "loss of the critics", "estimate")):
        axes[row, 0].set_ylabel(name)
    axes[0, 0].legend(fontsize=6)
    return figure


TABLES = {"divergence.csv": lambda: [HEADS, *lines()]}
FIGURES = {"divergence.png": draw}
