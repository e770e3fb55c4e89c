"""Figures in Trackio (`trackio show`): one run per run folder, with the seed in each figure's name.

Trackio ends a run when the same thread begins another, so seeds that are trained together share one.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from optimist.envs._lanes import package
from optimist.training.loggers._sent import Sent, configuration, title


class Trackio:
    """A continued run is the same run in Trackio. Its own variables hold: TRACKIO_DIR, TRACKIO_SPACE_ID."""

    def __init__(self, folder: Path, seeds: tuple[int, ...], step: int):
        trackio = package("trackio", extra="trackio")
        self._sent, self._one_seed = Sent(folder, "trackio"), len(seeds) == 1
        self._run = trackio.init(
            os.environ.get("TRACKIO_PROJECT") or "optimist",
            name=f"{title(folder)} {self._sent.name}",
            resume="allow",
            config=configuration(folder),
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def add(self, step: int, values: Mapping[str, float], seed: int) -> None:
        if news := self._sent.news(step, values, seed):
            prefix = "" if self._one_seed else f"seed-{seed}/"
            self._run.log({f"{prefix}{name}": value for name, value in news.items()}, step=step)
            self._sent.note(step, news, seed)

    def close(self) -> None:
        self._run.finish()
