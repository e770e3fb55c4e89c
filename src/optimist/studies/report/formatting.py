"""How the report says numbers: short, rounded alike, and in sentences."""

from collections.abc import Mapping

from optimist.studies.scores.curves import Spread, Summary


def headline(summaries: Mapping[str, Summary], card: Mapping) -> str:
    """The result in one sentence, every number in it computed."""
    seeds = _seeds([summary.seeds for summary in summaries.values()])
    if len(summaries) > 3:
        best = max(summaries, key=lambda label: summaries[label].last.mean)
        summaries = {f"{best}, the best of {len(summaries)} agents,": summaries[best]}
    phrases = zip(("ends at", "at", "at"), summaries.items(), strict=False)
    ends = [f"{label} {verb} {spread(summary.last)}" for verb, (label, summary) in phrases]
    return f"Trained on the log alone, {_joined(ends)} ({seeds}){_yardsticks(card)}."


def number(value: float) -> str:
    """Few digits, enough to compare: 1,234, 9.1, 0.25."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 1 or value == 0 else 2
    return f"{value:,.{decimals}f}"


def spread(score: Spread) -> str:
    """'9.1 ± 0.8', both to the same decimals; one seed has no spread to show."""
    mean = number(score.mean)
    if score.deviation is None:
        return mean
    decimals = len(mean.partition(".")[2])
    return f"{mean} ± {score.deviation:,.{decimals}f}"


def in_words(value) -> str:
    """A value as a person would write it; records and lists become 'mean 71.2, longest 900'."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {in_words(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    return str(value)


def _seeds(counts: list[int]) -> str:
    if set(counts) == {1}:
        return "one seed"
    fewest, most = min(counts), max(counts)
    return f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"


def _yardsticks(card: Mapping) -> str:
    average, best = card.get("return_mean"), card.get("best_policy_return")
    parts = [] if average is None else [f"the log's average behaviour scored {number(average)}"]
    parts += [] if best is None else [f"its best policy {number(best)}"]
    return f"; {', '.join(parts)}" if parts else ""


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
