"""Figures at Weights & Biases: one run per seed, grouped by run folder; WANDB_MODE=offline works too."""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from optimist.data.disk.files import TEMPORARY, make_folder, opened_beside
from optimist.data.disk.records import json_value, record, toml_table
from optimist.envs._environment import package
from optimist.errors import StorageError, UsageError

FOLDER = "loggers"  # in the run folder, which --restart removes


class Wandb:
    """A continued run is the same run at W&B. Its variables hold, such as WANDB_PROJECT."""

    def __init__(self, folder: Path, seeds: tuple[int, ...], step: int):
        wandb = package("wandb", extra="wandb")
        self._sent, file = Sent(folder), folder / "config.toml"
        config = toml_table(file.read_text("utf-8")) if file.exists() else {}
        # For people: the last two parts of the path, because the last may be equal for all.
        group = os.environ.get("WANDB_RUN_GROUP") or "/".join(folder.resolve().parts[-2:])
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


@dataclass
class Record:
    """The name of a run at W&B, and the newest row of each seed there."""

    name: str = field(default_factory=lambda: secrets.token_hex(4))
    rows: dict[str, tuple[int, list[str]]] = field(default_factory=dict)  # by seed: its step and the figures


class Sent:
    """What W&B has, in a file that is written after each row, so that a continued run sends no row twice."""

    def __init__(self, folder: Path):
        self._path = folder / FOLDER / "wandb.json"
        try:
            self._record = record(Record, json_value(self._path.read_text("utf-8")))
        except (OSError, ValueError):  # there is none, or a power cut spoilt it: W&B gets a new run
            self._record = Record()
        self.name = self._record.name
        make_folder(self._path.parent)
        self._keep()

    def news(self, step: int, values: Mapping[str, float], seed: int) -> dict[str, float]:
        """The figures that W&B does not have."""
        last, names = self._record.rows.get(str(seed), (-1, []))
        if step < last:
            return {}
        return {name: float(value) for name, value in values.items() if step > last or name not in names}

    def note(self, step: int, values: Mapping[str, float], seed: int) -> None:
        """W&B has these figures."""
        last, names = self._record.rows.get(str(seed), (-1, []))
        self._record.rows[str(seed)] = (step, [*(names if step == last else []), *values])
        self._keep()

    def _keep(self) -> None:
        """Without a sync, which would cost more than the row: at worst a row is logged twice."""
        partial = self._path.with_name(self._path.name + TEMPORARY)
        try:
            with opened_beside(partial) as stream:
                stream.write(json.dumps(asdict(self._record)).encode())
            os.replace(partial, self._path)
        except OSError as problem:
            raise StorageError(f"cannot write {self._path}: {problem.strerror}; make room") from problem
