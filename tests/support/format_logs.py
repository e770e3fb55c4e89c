"""Small recorded logs, files of tables, and a comparison of two datasets."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from little import PIXELS, random_play
from optimist.data import Dataset, Recorder, Spec, formats

VECTORS = Spec((4,), "float32", actions=3)
CONTINUOUS = Spec((3,), "float32", action_low=(-1.0, -2.0), action_high=(1.0, 2.0))
SPECS = {"vectors": VECTORS, "continuous": CONTINUOUS, "images": PIXELS}


def recorded(path: Path, spec: Spec, *, rows: int = 120) -> Dataset:
    """One lane in several shards that ends with the end of an episode, after terminals and truncations."""
    random = np.random.default_rng(0)
    as_discrete = spec if spec.discrete else Spec(spec.frame_shape, spec.frame_dtype, actions=2)
    with Recorder(path, spec, lanes=1, shard_steps=50) as recorder:
        steps = list(random_play(as_discrete, rows=rows, lanes=1))
        for number, (frame, action, reward, terminal, truncated, following) in enumerate(steps):
            if not spec.discrete:
                action = random.uniform(spec.action_low, spec.action_high, (1, 2)).astype(np.float32)
            ended = truncated | (number == rows - 1) & ~terminal
            recorder.add(frame, action, reward, terminal, ended, following)
    return Dataset.open(path)


def assert_equal_steps(one: Dataset, other: Dataset, *, but_ends: bool = False) -> None:
    """All columns and all frames are equal; `but_ends` leaves out the frames after terminal steps, which no
    learner uses."""
    for column in ("action", "reward", "terminal", "truncated"):
        np.testing.assert_array_equal(getattr(one.timeline, column), getattr(other.timeline, column), column)
    used = np.ones(one.timeline.frame_count, bool)
    if but_ends:
        last = np.append(one.timeline.episode_starts[1:], len(one)) - 1
        used[(last + np.arange(len(last)) + 1)[one.timeline.terminal[last]]] = False
    np.testing.assert_array_equal(one.timeline.decoded()[used], other.timeline.decoded()[used])


def in_csv(table, folder: Path) -> Path:
    frame = pd.DataFrame(table)
    lists = {name: column.map(";".join) for name, column in frame.items() if isinstance(column.iloc[0], list)}
    frame.assign(**lists).to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


def in_parquet(table, folder: Path) -> Path:
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    else:
        table = pa.table(table)
    pq.write_table(table, folder / "log.parquet", row_group_size=17)
    return folder / "log.parquet"


def the_log_in(folder: Path) -> Path:
    """The only file in it, if a format writes one file; otherwise the folder."""
    first, *others = folder.iterdir()
    return folder if others or first.is_dir() else first


def there_and_back(data: Dataset, name: str, folder: Path, **options):
    """A dataset that was written and read again, and the summaries of both."""
    found = formats.find(name)
    written = found.write(data, folder / "out", found.WriteOptions(**options) if options else None)
    log = the_log_in(folder / "out")
    assert formats.detected(log) == name and found.verify(log).problems == []
    read = found.read(log, folder / "again")
    return Dataset.open(folder / "again"), written, read
