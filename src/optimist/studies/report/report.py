"""One self-contained page about some runs and the log they learned from."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure

from optimist.data.disk.files import make_folder, write_whole
from optimist.errors import UsageError
from optimist.studies.report import figures
from optimist.studies.report.formatting import headline, in_words, spread
from optimist.studies.report.page import data_link, in_record, inline, page
from optimist.studies.scores import curves as scores

# Every figure is drawn twice, for a page and for a phone; the style sheet shows one of the two.
_SIZES = (figures.WIDE, figures.TALL)

_FACTS = {  # what the page says of the data: words -> the card's key, in reading order
    "recorded": "spec",
    "steps": "steps",
    "episodes": "episodes",
    "complete episodes": "complete_episodes",
    "mean return": "return_mean",
    "median return": "return_median",
    "best return": "return_best",
    "worst return": "return_worst",
    "best tenth's mean return": "return_best_tenth",
    "best policy's return": "best_policy_return",
    "episode length": "episode_length",
    "share of episodes that end": "terminal_rate",
    "share of episodes cut off": "truncated_rate",
    "action entropy, in nats": "action_entropy",
    "mean action": "action_mean",
    "deviation of actions": "action_std",
    "bytes on disk": "bytes_on_disk",
    "bytes per frame, raw": "bytes_per_frame_raw",
    "bytes per frame, stored": "bytes_per_frame_stored",
    "fingerprint": "fingerprint",
}


@dataclass(frozen=True)
class Row:
    """One line of the results table, in words."""

    label: str
    colour: str
    seeds: int
    evaluations: int
    last: str
    best: str
    mean_of_last: str
    ratio: str
    csv_name: str
    csv_link: str
    config: str


def write_report(
    path: str | os.PathLike,
    *,
    title: str,
    runs: Mapping[str, Path],
    card: Mapping,
    video_gif: bytes | None = None,
    versions: Mapping[str, str],
    commands: Sequence[str],
    notes: str = "",
) -> None:
    """Write the page whole or not at all; it needs no network and no other file."""
    if not runs:
        raise UsageError("a report needs at least one run folder")
    runs = {label: Path(run) for label, run in runs.items()}
    summaries = {label: scores.summary(scores.scores(run)) for label, run in runs.items()}
    content = page(
        "report.html.j2",
        title=title,
        headline=headline(summaries, card),
        curves=_curves(runs, card),
        experience=_experience(card),
        rows=[_row(index, label, runs[label], summaries[label], card) for index, label in enumerate(runs)],
        facts=_facts(card),
        frequencies=card.get("action_frequency") or [],
        provenance=in_record(card.get("provenance") or {}),
        video=data_link("image/gif", video_gif) if video_gif else None,
        versions=in_record(versions),
        commands=commands,
        notes=notes,
    )
    make_folder(Path(path).parent)
    write_whole(Path(path), content)


def _curves(runs: Mapping[str, Path], card: Mapping) -> list[Markup]:
    best, average = card.get("best_policy_return"), card.get("return_mean")
    return [_drawn(figures.learning_curves(runs, best=best, average=average, size=size)) for size in _SIZES]


def _experience(card: Mapping) -> list[Markup]:
    if not card.get("return_per_tenth"):
        return []
    return [_drawn(figures.returns_over_experience(card, size=size)) for size in _SIZES]


def _drawn(figure: Figure) -> Markup:
    return inline(figures.svg(figure))


def _row(index: int, label: str, run: Path, summary: scores.Summary, card: Mapping) -> Row:
    average, config = card.get("return_mean"), run / "config.toml"
    return Row(
        label=label,
        colour=figures.colour(index),
        seeds=summary.seeds,
        evaluations=summary.evaluations,
        last=spread(summary.last),
        best=spread(summary.best),
        mean_of_last=spread(summary.mean_of_last),
        # A ratio to zero or to a negative return would mean nothing.
        ratio=f"{summary.last.mean / average:.2f}" if average and average > 0 else "–",
        csv_name=re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-").lower() + "-episodes.csv",
        csv_link=data_link("text/csv", (run / "episodes.csv").read_bytes()),
        config=config.read_text("utf-8", errors="replace") if config.is_file() else "",
    )


def _facts(card: Mapping) -> dict[str, str]:
    return {words: in_words(card[key]) for words, key in _FACTS.items() if card.get(key) is not None}
