"""Batches per second of the data path: Atari-like frames on the device, packed, in memory, or on disk."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import jax
import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.sampling import Sampler
from optimist.studies.bench import Timing, rounded
from optimist.training.feeding import Feed, StreamedFeed, feed_of

HOMES = ("device", "packed", "memory", "compressed")
TRANSITIONS, BATCH, STEPS, EPISODE, STACK, ACTIONS = 20_000, 32, 20, 500, 4, 18
SPRITES, LARGEST = 6, 76  # sprites in a frame, and the last row and column of a sprite's corner


def game_frames(count: int) -> np.ndarray:
    """Frames that compress like real games: a still background, a score line, a few moving sprites."""
    random = np.random.default_rng(0)
    background = np.repeat(random.integers(0, 256, (84, 4)), 21, axis=1).astype(np.uint8)
    frames = np.broadcast_to(background, (count, 84, 84)).copy()
    places = np.cumsum(random.integers(-2, 3, (count, SPRITES, 2)), axis=0) % LARGEST
    for frame, sprites in zip(frames, places, strict=True):
        for y, x in sprites:
            frame[y : y + 8, x : x + 6] = 200
    frames[:, :6] = 255 * random.integers(0, 2, (count, 6, 84), np.uint8)
    return frames[..., None]


def atari_like_log(folder: Path, steps: int) -> Dataset:
    """A log of such frames on disk."""
    random = np.random.default_rng(0)
    log = Dataset.from_arrays(
        game_frames(steps),
        random.integers(0, ACTIONS, steps),
        random.random(steps),
        np.arange(steps) % EPISODE == EPISODE - 1,
        truncations=False,
        actions_count=ACTIONS,
        stack=STACK,
    )
    return log.save(folder)


def feeding(log: Dataset, home: str) -> Callable[[], int]:
    """Batches with stacked frames, ready on the device. From disk every batch decodes its frames again."""
    samplers = [Sampler(log, batch=BATCH)]
    feed: Feed = StreamedFeed(samplers, kept=0) if home == "compressed" else feed_of(samplers, home)
    batches = jax.jit(jax.vmap(jax.vmap(feed.minibatch, in_axes=(None, 0)), in_axes=(None, 0)))
    count, done = min(STEPS, feed.steps_at_once), 0

    def do() -> int:
        nonlocal done
        jax.block_until_ready(batches(feed.resident, feed.items(done, count)))
        done += count
        return count

    return do


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = atari_like_log(Path(folder) / "log", TRANSITIONS)
        rounds = Timing().rates([feeding(log, home) for home in HOMES])
    for home, rates in zip(HOMES, zip(*rounds, strict=True), strict=True):
        print(f"{home:10} {rounded(median(rates)):>8} batches/s")
