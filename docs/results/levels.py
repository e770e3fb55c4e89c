"""A score that curves are compared with, as a line across a figure."""

from typing import Any


def draw_level(axes: Any, name: str, level: float) -> None:
    axes.axhline(level, color="grey", linewidth=0.8, linestyle=":")
    axes.annotate(
        name,
        (0.995, level),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        fontsize=8,
        color="grey",
    )
