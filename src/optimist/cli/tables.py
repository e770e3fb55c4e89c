"""What the command line prints: small tables."""

import os
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from optimist.data.formats import Report
from optimist.studies.job import Job
from optimist.studies.report.formatting import in_words, number, spread
from optimist.studies.scores import table_one
from optimist.studies.scores.curves import Summary
from optimist.studies.scores.normalisation import Normaliser
from optimist.studies.status import JobStatus
from optimist.training.evaluation import EpisodeScore, mean_scores

PIPED = 200  # letters of a line where there is no terminal
SKIPPED = ("provenance",)  # too long for a terminal; --json has it


def print_table(table: Table) -> None:
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED  # there is no edge at which to cut names
    console.print(table)


def card_table(card: Mapping, title: str) -> Table:
    """The facts about a dataset, one a line."""
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in card.items():
        if name not in SKIPPED and value is not None:
            table.add_row(name.replace("_", " "), in_words(value))
    origin = card.get("provenance", {}).get("environment")
    if origin:
        table.add_row("environment", origin)
    return table


def report_table(report: Report, title: str) -> Table:
    """What logs of another program hold."""
    table = Table(*report.heads, title=title, title_justify="left")
    for row in report.rows:
        table.add_row(*row)
    return table


def evaluation_table(step: int, rows: list[EpisodeScore]) -> Table:
    table = Table(
        "seed",
        "episodes",
        "average return",
        "worst",
        "best",
        "average length",
        title=f"after {step:,} steps",
    )
    means = mean_scores(rows)
    for seed, mean in means.items():
        mine = [row for row in rows if row.seed == seed]
        scores = [row.score for row in mine]
        length = np.mean([row.length for row in mine])
        table.add_row(
            str(seed),
            str(len(mine)),
            f"{mean:.2f}",
            number(min(scores)),
            number(max(scores)),
            f"{length:.0f}",
        )
    if len(means) > 1:
        every = list(means.values())
        table.add_row(
            "all", str(len(rows)), f"{np.mean(every):.2f} ± {np.std(every, ddof=1):.2f}", "", "", ""
        )
    return table


def results_table(summaries: Mapping[str, Summary], card: Mapping) -> Table:
    """Every agent's scores beside the two yardsticks of the data."""
    table = Table(
        "",
        "last",
        "best of n evaluations",
        "mean of last three",
        title="average return, mean ± sd over seeds",
    )
    for label, summary in summaries.items():
        best = f"{spread(summary.best)} of {summary.evaluations}"
        table.add_row(label, spread(summary.last), best, spread(summary.mean_of_last))
    for name, key in (
        ("best policy in the data", "best_policy_return"),
        ("average behaviour", "return_mean"),
    ):
        if card.get(key) is not None:
            table.add_row(f"[dim]{name}", f"[dim]{number(card[key])}", "", "")
    return table


def grid_table(title: str, jobs: Sequence[Job]) -> Table:
    """What a study would run: one line per run, and the sum."""
    table = Table("run", "agent", "seeds", "steps of each", title=title, title_justify="left")
    for job in jobs:
        name = f"{job.agent} ({job.preset})" if job.preset else job.agent
        table.add_row(job.name, name, str(len(job.seeds)), f"{job.steps():,}")
    played = sum(job.steps() * len(job.seeds) for job in jobs if job.plays)
    learners = [job for job in jobs if not job.plays and job.label]  # random play has no label
    learned = sum(job.steps() * len(job.seeds) for job in learners)
    table.add_row(f"[bold]{len(jobs)} runs", "", "", f"{played:,} steps played, {learned:,} updates offline")
    return table


def status_table(title: str, runs: Sequence[JobStatus]) -> Table:
    """How far each run of a study is."""
    table = Table("run", "state", "progress", "a second", "left", title=title, title_justify="left")
    for run in runs:
        rate = f"{run.rate:,.0f}" if run.rate else ""
        left = f"{run.seconds_left:,.0f} s" if run.seconds_left is not None else ""
        table.add_row(run.name, run.state, f"{run.step:,} of {run.steps:,}", rate, left)
    done = sum(run.state == "done" for run in runs)
    table.add_row(f"[bold]{done} of {len(runs)} done", "", "", "", "")
    return table


def scores_table(rows: Sequence[table_one.Row], by: Normaliser, recent: int) -> Table:
    """Table 1: a line per agent, beside what the paper has for it."""
    table = Table(
        title=table_one.title(rows, by),
        title_justify="left",
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),  # the paper's longest name and five columns fit into 80 characters
    )
    agent, *others = table_one.headings(recent, table_one.MAIN)
    table.add_column(agent)
    for heading in others:
        table.add_column(heading, justify="right", min_width=len("123.4% / 56"))
    for row in rows:
        table.add_row(*map(escape, table_one.cells(row, table_one.MAIN)))
    return table


def per_game_table(agent: str, rows: Sequence[table_one.GameRow], by: Normaliser, recent: int) -> Table:
    """One agent's games, the least improved first."""
    table = Table(title=escape(f"{agent}: improvement over {by.yardstick} in %"), title_justify="left")
    titles = [table_one.kind_title(kind, None, recent) for kind in table_one.KINDS]
    for heading in ("game", *titles):
        table.add_column(heading, justify="left" if heading == "game" else "right")
    for row in rows:
        found = [getattr(row.improvement, kind) for kind in table_one.KINDS]
        shown = ("" if each is None else f"{each:+,.1f}" for each in found)
        table.add_row(escape(row.game), *shown)
    return table


def proposition_table(readings: Sequence) -> Table:
    """The last reading of every ensemble."""
    table = Table(
        "",
        "heads disagree by",
        "their mean is off by",
        "a head is off by",
        "loss varies by",
        title="at the end",
    )
    for reading in {reading.agent: reading for reading in readings}.values():
        figures = (reading.disagreement, reading.distance, reading.head_distance, reading.spread)
        table.add_row(reading.agent, *(f"{figure:.1e}" for figure in figures))
    return table
