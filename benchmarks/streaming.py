"""Feeding batches from the compressed shards of a dataset as long as the paper's: 50 million steps (STEPS).

There are 400 distinct frames files, about 1 GB; hard links give them 3,051 names. They do not fit into the
CPU caches but into the page cache, so this measures decoding and not the disk. The frames are from five real
games; each file has permuted colours, a shifted picture and a random pixel in every frame.
"""

import os
import tempfile
import time
from pathlib import Path
from statistics import median

import jax
import numpy as np

from benchmarks.atari import GAMES, SPEC, played
from optimist.data import Dataset, Sampler
from optimist.data.disk.files import File, write_whole
from optimist.data.disk.manifest import Block, Manifest, Shard, read
from optimist.data.disk.shard import frames_content, steps_content
from optimist.training.feeding import StreamedFeed

STEPS = int(os.environ.get("STEPS", 50_000_000))
LANES, ROWS, EPISODE = 8, 2048, 512  # 16,384 steps a shard, as the recorder writes them
FRAMES = LANES * (ROWS + ROWS // EPISODE)
DISTINCT = 400
CHUNKS, ROUNDS = 40, 7
IN_MEMORY = 1_000_000  # steps whose frames take 7 GB
FRAME_BYTES = 84 * 84
GIB = 2**30


def changed(frames: np.ndarray, number: int) -> np.ndarray:
    random = np.random.default_rng(number)
    frames = np.roll(random.permutation(256).astype(np.uint8)[frames], random.integers(84), axis=2)
    y, x = random.integers(0, 84, (2, len(frames)))
    frames[np.arange(len(frames)), y, x, 0] = random.integers(0, 256, len(frames))
    return frames


def write_frames(folder: Path, shards: int, games: tuple[str, ...]) -> list[File]:
    """The frames files of all shards; the later ones are links."""
    play = [np.resize(played(game), (FRAMES, *SPEC.frame_shape)) for game in games]
    files = []
    for number in range(shards):
        path = folder / f"frames-{number:06d}.arrow"
        if number < DISTINCT:
            content = frames_content(changed(play[number % len(play)], number), SPEC)
            files.append(write_whole(path, content))
        else:
            same = files[number % DISTINCT]
            os.link(folder / same.file, path)
            files.append(File(path.name, same.bytes, same.sha256))
    return files


def columns(number: int) -> dict[str, np.ndarray]:
    """The steps of one shard; an episode ends every 512 steps."""
    random, count = np.random.default_rng(number), LANES * ROWS
    lane, row = np.divmod(np.arange(count), ROWS)
    return dict(
        lane=lane.astype(np.int32),
        time=number * count + row * LANES + lane,
        action=random.integers(0, SPEC.actions, count).astype(np.int32),
        reward=random.integers(0, 2, count).astype(np.float32),
        terminal=row % EPISODE == EPISODE - 1,
        truncated=np.zeros(count, bool),
    )


def write_dataset(folder: Path, steps: int = STEPS, games: tuple[str, ...] = GAMES) -> None:
    shards = max(1, steps // (LANES * ROWS))
    blocks = tuple(Block(lane, ROWS, FRAMES // LANES, ends_open=False) for lane in range(LANES))
    manifest = Manifest(SPEC, {"made": "by benchmarks/streaming.py"})
    for number, frames in enumerate(write_frames(folder, shards, games)):
        written = write_whole(folder / f"steps-{number:06d}.arrow", steps_content(columns(number), SPEC))
        manifest.shards.append(Shard(written, frames, blocks))
    manifest.write(folder)


def own_memory() -> int:
    """Memory of this process without pages of files, which the system can drop."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) * 1024


def feeding(home: StreamedFeed, cores: set[int], stack: bool) -> str:
    """Batches per second on these cores, as text; with `stack` the compiled program also stacks frames."""
    for task in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(task.name), cores)
    each = jax.jit(jax.vmap(jax.vmap(lambda item: home.minibatch(home.resident, item))))
    chunk, rates = home.steps_at_once, []
    for turn in range(ROUNDS):
        first = turn * CHUNKS * chunk
        start, cpu = time.perf_counter(), time.process_time()
        for number in range(CHUNKS):
            items = home.items(first + number * chunk, chunk)
            if stack:
                jax.block_until_ready(each(items))
        batches = CHUNKS * chunk
        rates.append((batches / (time.perf_counter() - start), (time.process_time() - cpu) / batches * 1e3))
    wall, cpu = (median(column) for column in zip(*rates, strict=True))
    return f"{wall:,.0f} batches/s (best round {max(rates)[0]:,.0f}), {cpu:.2f} ms of CPU time per batch"


def gathering() -> float:
    """Batches per second that one thread gathers from raw frames in memory."""
    frames = np.zeros((IN_MEMORY, FRAME_BYTES), np.uint8)
    frames[:, ::4096] = 1  # so that every page is allocated
    numbers = np.random.default_rng(0).integers(4, IN_MEMORY, (500, 32, 1)) - np.arange(4, -1, -1)
    start = time.perf_counter()
    for batch in numbers:
        frames[batch]
    return len(numbers) / (time.perf_counter() - start)


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))[:2]
    before = own_memory()
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(Path(folder))
        made = own_memory()
        start = time.perf_counter()
        dataset = Dataset.open(folder)
        seconds = time.perf_counter() - start
        files = [shard.frames.bytes for shard in read(Path(folder)).shards]
        shards, stored = len(files), sum(files) / dataset.timeline.frame_count
        distinct = min(DISTINCT, shards) / shards * sum(files) / 1e9
        print(f"{len(dataset):,} steps in {shards:,} shards, {stored:.0f} bytes per frame;")
        print(f"{distinct:.1f} GB of frames are distinct and in the page cache, the rest are links to them")
        print(f"opened in {seconds:.1f} s, with a hash of every steps file (promised: 5)")
        home = StreamedFeed([Sampler(dataset)], kept=0)
        for label, used, stack in (
            ("2 cores", cores, False),
            ("1 core", cores[:1], False),
            ("2 cores, stacked", cores, True),
        ):
            print(f"{label}: {feeding(home, set(used), stack)}", flush=True)
        print(f"memory added by feeding: {(own_memory() - made) / GIB:.2f} GiB (promised: 1.5)")
        print(f"(making the dataset had left {(made - before) / GIB:.2f} GiB allocated)")
    print(f"uncompressed, {IN_MEMORY:,} steps in memory: {gathering():,.0f} batches/s gathered by one thread")
    whole = STEPS * FRAME_BYTES / 1e9
    print(f"the released code keeps 5 x 1M raw frames: {5e6 * FRAME_BYTES / 1e9:.1f} GB")
    print(f"d3rlpy keeps every frame of {STEPS:,} steps: {whole:,.0f} GB, four times that if stacked")
