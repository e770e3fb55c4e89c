"""The page of a dataset: what to know before training on it, in one file."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from PIL import Image

from optimist.data.dataset import Dataset
from optimist.data.look import Look, card, follows_time, mean_interval
from optimist.data.views import episodes_in_words
from optimist.data.warnings import warnings
from optimist.studies.report.drawing import (
    COLOURS,
    INK,
    SMALL,
    STEPS,
    Line,
    colour,
    draw_lines,
    dress,
    panels,
)
from optimist.studies.report.page import Picture, data_link, picture, write_html
from optimist.studies.sheet import Sheet, facts_in_words, number

MOST_FEATURES = 500  # rows of the table
BINS = 40
DOTS = 1500  # up to so many episodes each is a dot; of more, only averages are drawn
BARS = 24  # actions that have their own bar
MANY_TIMES = 50  # ratio of counts above which the axis is logarithmic
FEW_VALUES = 12  # distinct whole numbers that are counted one by one
CURVES = len(COLOURS)  # dimensions of action vectors in one figure
FRAMES, PIXELS = 8, 160  # example frames, and their least width in the page
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
    warned, best = warnings(dataset, look), look.best_tenth
    facts = {name: value for name, value in card(dataset).items() if name not in SHOWN_ELSEWHERE}
    if best:
        share = f"{best.steps:,} steps, {best.steps / len(dataset):.1%} of all"
        facts["best tenth"] = f"{episodes_in_words(best.episodes)}, {share}"
    write_html(
        out,
        "data.html.j2",
        title=title,
        headline=headline(look, warned),
        warnings=warned,
        figures=list(pictures(look)),
        frames=example_frames(look),
        features=feature_table(look),
        facts=facts_in_words(facts),
        provenance=facts_in_words(dataset.provenance),
        command=command,
    )
    return warned


def headline(look: Look, warned: list[str]) -> str:
    dataset, episodes = look.dataset, look.episodes
    counts = f"{len(dataset):,} steps in {episodes_in_words(len(episodes))}"
    returns, best = episodes.returns[episodes.complete], look.best_tenth
    if best:
        mean, top, sure = number(returns.mean()), number(best.mean_return), mean_interval(returns)
        within = f" [{number(sure[0])}, {number(sure[1])}]" if sure else ""
        counts += f"; the mean return is {mean}{within}, in the best tenth {top}"
    ending = {0: "No warnings.", 1: "One warning:"}.get(len(warned), f"{len(warned)} warnings:")
    return f"{counts}. {ending}"


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


def pictures(look: Look) -> Iterator[Picture]:
    """The figures of this dataset; without a complete episode there are no returns."""
    complete = int(look.episodes.complete.sum())
    order = "Returns over time" if follows_time(look.dataset.provenance) else "Returns in the log's order"
    drawings: list[tuple[str, Callable[[Axes, Look], str]]] = [
        *([(order, _returns_over_time)] if complete > 1 else []),
        *([("Returns of complete episodes", _returns)] if complete else []),
        ("Lengths of episodes", _lengths),
        ("Actions", _actions if look.spec.discrete else _vectors),
        ("Rewards of single steps", _rewards),
    ]
    for title, draw in drawings:
        figure, (axes,) = panels(1, 1, SMALL)
        caption = draw(axes, look)
        yield picture(title, caption, figure)


# Each of the next functions draws one figure and returns its caption.


def _returns_over_time(axes: Axes, look: Look) -> str:
    episodes = look.episodes
    order = np.flatnonzero(episodes.complete)[np.argsort(episodes.time[episodes.complete], kind="stable")]
    returns, ended = episodes.returns[order], np.cumsum(episodes.lengths[order])
    many = len(order) > DOTS
    if not many:
        axes.plot(ended, returns, ".", color=colour(0), alpha=0.25, markersize=4)
    stretches = np.array_split(np.arange(len(order)), min(BINS, len(order)))
    at, means = ([each[stretch].mean() for stretch in stretches] for each in (ended, returns))
    low, high = np.transpose([np.quantile(returns[stretch], (0.1, 0.9)) for stretch in stretches])
    draw_lines(axes, {"": Line(at, means, band=(low, high) if many else None)})
    by = "by time" if follows_time(look.dataset.provenance) else "in the log's order"
    dress(axes, xlabel=f"steps, {by}", ylabel="return")
    around = "the band holds the middle 80% of the episodes" if many else "a dot is an episode"
    return f"The line is the average of consecutive episodes; {around}."


def _returns(axes: Axes, look: Look) -> str:
    returns = look.episodes.returns[look.episodes.complete]
    _histogram(axes, returns, "return", "episodes")
    axes.axvline(returns.mean(), color=INK, linewidth=1)
    return "The line is the mean."


def _lengths(axes: Axes, look: Look) -> str:
    _histogram(axes, look.episodes.lengths, "steps", "episodes")
    episodes = look.episodes
    ends = {"terminal": episodes.terminal.sum(), "truncated": episodes.truncated.sum()}
    cut = len(episodes) - sum(ends.values())
    words = [f"{count:,} end {name}" for name, count in ends.items() if count]
    return ", ".join([*words, *([f"{cut:,} are cut off"] if cut else [])]).capitalize() + "."


def _rewards(axes: Axes, look: Look) -> str:
    _histogram(axes, look.reward, "reward", "steps")
    rewards, steps = look.rewards, len(look.reward)
    share = rewards.unusual_steps / steps
    if not share:
        return f"Every reward is {rewards.usual:g}."
    usual = (
        ""
        if share > 0.9
        else (
            f"; {rewards.unusual_steps:,} of {steps:,} steps ({100 * share:.2g}%) have a reward other than "
            f"{rewards.usual:g}"
        )
    )
    return f"From {rewards.low:g} to {rewards.high:g}{usual}."


def _histogram(axes: Axes, values: np.ndarray, xlabel: str, ylabel: str) -> None:
    """A bar for each value if they are few, or else for each of at most BINS ranges, which hold equally many
    whole numbers; logarithmic if the counts differ much."""
    known = np.unique(values)
    whole = bool((known == np.round(known)).all())
    if len(known) <= FEW_VALUES:
        counts = np.array([(values == each).sum() for each in known])
        axes.bar(known, counts, width=0.6 * (np.diff(known).min() if len(known) > 1 else 1), color=colour(0))
    else:
        borders = np.linspace(known[0], known[-1], BINS + 1)
        if whole:
            width = -(-(known[-1] - known[0] + 1) // BINS)
            borders = np.arange(known[0] - 0.5, known[-1] + width, width)
        counts, edges = np.histogram(values, borders)
        axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=colour(0))
    if len(counts) > 1 and counts.max() > MANY_TIMES * counts[counts > 0].min():
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7)
        ylabel += " (logarithmic)"
    dress(axes, xlabel=xlabel, ylabel=ylabel)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS, integer=whole))
    if len(known) == 1:
        axes.set(xlim=(known[0] - 1, known[0] + 1), xticks=known)


def _actions(axes: Axes, look: Look) -> str:
    """Shares of the most frequent actions; all others together are the last bar."""
    share = look.action_counts / len(look.action)
    few = len(share) <= BARS
    chosen = np.arange(len(share)) if few else np.argsort(-share, kind="stable")[: BARS - 1]
    heights = [*(100 * share[chosen]), *([] if few else [100 * (1 - share[chosen].sum())])]
    labels = [*map(look.name_of, chosen.tolist()), *([] if few else ["others"])]
    axes.bar(range(len(heights)), heights, color=colour(0))
    dress(axes, xlabel="action", ylabel="% of the steps")
    turned = max(map(len, labels)) * len(labels) > 40
    axes.set_xticks(range(len(heights)), labels, rotation=90 if turned else 0, parse_math=False)
    caption = f"Entropy {look.action_entropy:.2f} of {np.log(look.spec.actions):.2f} nats"
    if look.predicted is not None:
        alone = f"({look.most_common:.0%} by the most common action alone)"
        caption += f"; {look.predicted:.0%} of them are predicted from the observation {alone}"
    return f"{caption}."


def _vectors(axes: Axes, look: Look) -> str:
    """The density of each dimension, scaled to its bounds."""
    low, high = np.array(look.spec.action_low), np.array(look.spec.action_high)
    scaled = 2 * (look.sample.actions - low) / np.where(high > low, high - low, 1) - 1
    for column in range(min(CURVES, scaled.shape[1])):
        counts, edges = np.histogram(scaled[:, column], BINS, range=(-1, 1))
        shares = 100 * counts / len(scaled)
        label = f"{column}: {look.action_column(column)}, {low[column]:g} to {high[column]:g}"
        axes.stairs(shares, edges, color=colour(column), label=label)
    dress(axes, xlabel="from the lower to the upper bound", ylabel="% of the steps")
    axes.set_xticks([-1, 0, 1], ["low", "middle", "high"])
    for text in axes.legend(frameon=False, fontsize=8).get_texts():
        text.set_parse_math(False)
    dimensions = look.spec.action_shape[0]
    shown = f"{CURVES} of {dimensions} dimensions. " * (dimensions > CURVES)
    if look.predicted is None:
        return shown
    return f"{shown}{look.predicted:.0%} of their variance is predicted from the observation."


def example_frames(look: Look) -> list[str]:
    """Some images of the sample, in order of time, as links of a page; none for vectors."""
    if len(look.spec.frame_shape) < 3:
        return []
    seen, depth = look.sample.observations, look.spec.frame_shape[-1]
    chosen = np.unique(np.linspace(0, len(seen) - 1, FRAMES).astype(int))
    return [data_link("image/png", _png(seen[each][..., -depth:])) for each in chosen]


def _png(frame: np.ndarray) -> bytes:
    """A frame with grey, colour or any number of channels; the last kind gets a colour per channel."""
    values = frame.astype(np.float64) * (255 if frame.dtype == bool else 1)
    if frame.dtype.kind == "f":
        values = 255 * (values - values.min()) / max(np.ptp(values), 1e-9)
    if frame.shape[-1] not in (1, 3):
        inks = [[int(ink[at : at + 2], 16) for at in (1, 3, 5)] for ink in COLOURS]
        coloured = [values[..., [n]] / 255 * inks[n % len(inks)] for n in range(frame.shape[-1])]
        values = np.max(coloured, axis=0)
    image = np.broadcast_to(np.clip(values, 0, 255).astype(np.uint8), (*frame.shape[:2], 3))
    factor = -(-PIXELS // frame.shape[1])
    file = io.BytesIO()
    Image.fromarray(image.repeat(factor, axis=0).repeat(factor, axis=1)).save(file, "PNG")
    return file.getvalue()
