"""The page of a dataset: what to know before training on it, in one file."""

from pathlib import Path
from typing import Any

from optimist.data.dataset import Dataset
from optimist.data.disk.files import make_folder, write_whole
from optimist.data.look import Look, card, mean_interval
from optimist.data.views import episodes_in_words
from optimist.data.warnings import warnings_of
from optimist.studies.report.data_figures import example_frames, pictures
from optimist.studies.report.page import page
from optimist.studies.sheet import Sheet, in_words, number

MOST_FEATURES = 500  # rows of the table
SHOWN_ELSEWHERE = (  # facts in figures, or in the words about the spec
    "provenance",
    "return_per_tenth",
    "action_frequency",
    "action_mean",
    "action_std",
    "action_names",
)


def write_data_report(dataset: Dataset, out: Path, *, title: str, command: str) -> list[str]:
    """Write the page and return its warnings."""
    look = Look(dataset)
    warned = warnings_of(look)
    content = page(
        "data.html.j2",
        title=title,
        headline=headline(look, warned),
        warnings=warned,
        figures=list(pictures(look)),
        frames=example_frames(look),
        features=feature_table(look),
        facts=_facts(look),
        provenance=_in_words(dataset.provenance),
        command=command,
    )
    make_folder(out.parent)
    write_whole(out, content)
    return warned


def headline(look: Look, warned: list[str]) -> str:
    dataset, episodes = look.dataset, look.episodes
    counts = f"{len(dataset):,} steps in {episodes_in_words(len(episodes))}"
    returns, best = episodes.returns[episodes.complete], look.best_tenth
    if best:
        mean, top, sure = number(returns.mean()), number(best.mean_return), mean_interval(returns)
        within = f" [{number(sure[0])}, {number(sure[1])}]" if sure else ""
        counts += f"; the mean return is {mean}{within}, in the best tenth {top}"
    found = {0: "No warnings.", 1: "One warning:"}
    return f"{counts}. {found.get(len(warned), f'{len(warned)} warnings:')}"


def feature_table(look: Look) -> Sheet | None:
    """The features of vectors; None for images."""
    features = look.features
    if features is None:
        return None
    rows: list[list[Any]] = []
    for each in range(min(len(features.mean), MOST_FEATURES)):
        figures = (features.mean, features.spread, features.low, features.high)
        repeats = f"equals feature {look.feature(features.repeats[each])}" if each in features.repeats else ""
        remark = "constant" if features.constant[each] else repeats
        rows.append([look.feature(each), *(float(column[each]) for column in figures), remark])
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    more = len(features.mean) - len(rows)
    notes = [f"of {len(look.sample.actions):,} observations"] + [f"and {more:,} more features"] * (more > 0)
    heads = ("feature", "mean", "spread", "least", "most", "remark")[: len(rows[0])]
    return Sheet("features of the observation", heads, rows, notes)


def _facts(look: Look) -> dict[str, str]:
    known = card(look.dataset)
    facts = {name: value for name, value in known.items() if name not in SHOWN_ELSEWHERE}
    best = look.best_tenth
    if best:
        share = f"{best.steps:,} steps, {best.steps / len(look.dataset):.1%} of all"
        facts["best tenth"] = f"{episodes_in_words(best.episodes)}, {share}"
    return _in_words(facts)


def _in_words(record: dict[str, Any]) -> dict[str, str]:
    known = {name: value for name, value in record.items() if value not in (None, "")}
    return {str(name).replace("_", " "): in_words(value) for name, value in known.items()}
