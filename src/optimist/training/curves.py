"""Live curves: TensorBoard events, one sub-folder per seed."""

from pathlib import Path

from tensorboardX import SummaryWriter


class Curves:
    def __init__(self, folder: Path, seeds: tuple[int, ...], step: int):
        self._writers = {
            seed: SummaryWriter(str(folder / "tensorboard" / f"seed-{seed}"), purge_step=step + 1)
            for seed in seeds
        }

    def add(self, rows: list[dict]) -> None:
        """Rows of metrics with their `step` and `seed`."""
        for row in rows:
            for name in row.keys() - {"step", "seed"}:
                self._writers[row["seed"]].add_scalar(name, row[name], row["step"])

    def __enter__(self) -> "Curves":
        return self

    def __exit__(self, *_) -> None:
        for writer in self._writers.values():
            writer.close()
