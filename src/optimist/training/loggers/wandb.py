"""Figures at Weights & Biases: one run per seed, grouped by run folder; WANDB_MODE=offline works too."""

import os
from collections.abc import Mapping
from pathlib import Path

from optimist.envs._lanes import package
from optimist.errors import UsageError
from optimist.training.loggers._sent import FOLDER, Sent, configuration, title


class Wandb:
    """A continued run is the same run at W&B. Its variables hold, such as WANDB_PROJECT."""

    def __init__(self, folder: Path, seeds: tuple[int, ...], step: int):
        wandb = package("wandb", extra="wandb")
        self._sent, config = Sent(folder, "wandb"), configuration(folder)
        group = os.environ.get("WANDB_RUN_GROUP") or title(folder)
        try:
            self._runs = {
                seed: wandb.init(
                    project=os.environ.get("WANDB_PROJECT") or "optimist",
                    group=group,
                    name=f"{group} seed {seed}",
                    id=f"{self._sent.name}-{seed}",
                    resume="allow",
                    dir=folder / FOLDER,
                    reinit="create_new",  # several runs at a time
                    config={**config, "seed": seed},
                    settings=wandb.Settings(console="off"),  # this process prints for all of them
                )
                for seed in seeds
            }
        except wandb.errors.Error as problem:
            reason = str(problem).partition("\n")[0]
            raise UsageError(
                f"W&B cannot begin ({reason}): run `wandb login`, or set WANDB_MODE=offline"
            ) from problem

    def add(self, step: int, values: Mapping[str, float], seed: int) -> None:
        if news := self._sent.news(step, values, seed):
            self._runs[seed].log(news, step=step)
            self._sent.note(step, news, seed)

    def close(self) -> None:
        for run in self._runs.values():
            run.finish()
