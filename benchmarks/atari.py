"""Real 84x84 Atari frames: bytes per frame on disk and packed for a device, beside gzip and PNG, and times.

DATA names dataset folders, separated by colons; without it scripted play, which repeats each action for a
while, is recorded in GAMES, which are those of the paper's figures by default.
"""

import gzip
import io
import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from optimist import envs
from optimist.data import Dataset, Recorder, Spec
from optimist.data.disk.codec import OFFSET_BYTES, Decoder, encode
from optimist.data.packing import GROUP, nbytes, packed

GAMES = tuple(os.environ.get("GAMES", "Pong,Breakout,Seaquest,Qbert,Asterix").split(","))
SPEC = Spec((84, 84, 1), "uint8", actions=18, stack=4)
LANES, FRAMES = 8, 16384  # as many as a shard holds
RECORDED, RECORDED_LANES = 64_000, 64
PROMISED = 250


def played(game: str, frames: int = FRAMES) -> np.ndarray:
    """Frames of scripted play, lane by lane."""
    play, random = envs.make(f"atari/{game}", lanes=LANES, seed=0), np.random.default_rng(0)
    seen = np.empty((LANES, frames // LANES, *SPEC.frame_shape), np.uint8)
    observation, held = play.reset(), np.ones(LANES, np.int64)
    for step in range(seen.shape[1]):
        seen[:, step] = observation
        changes = random.random(LANES) < 0.15
        held[changes] = random.integers(0, play.spec.actions, changes.sum())
        observation = play.step(np.where(random.random(LANES) < 0.05, 1, held)).observation  # 1 is FIRE
    return seen.reshape(-1, *SPEC.frame_shape)


def recorded(folder: str) -> np.ndarray:
    """One shard of frames from the end of a recording, when its agent had learned most."""
    timeline = Dataset.open(folder).timeline
    return timeline.frames(np.arange(max(0, timeline.frame_count - FRAMES), timeline.frame_count))


def png(frame: np.ndarray) -> int:
    file = io.BytesIO()
    Image.fromarray(frame[..., 0]).save(file, "png", optimize=True)
    return len(file.getvalue())


def figures(frames: np.ndarray) -> tuple[float, ...]:
    """Bytes per frame as stored, packed, with gzip over all and as PNG; CPU microseconds to encode, to decode
    and to pack."""
    start = time.process_time()
    encoded = encode(frames, SPEC)
    encoding = time.process_time() - start
    rows = np.random.default_rng(0).permutation(len(frames))[:4000].reshape(-1, 5)
    decoder = Decoder(SPEC, encoded, "frames")
    start = time.process_time()
    for five in rows:
        decoder.decode(five)
    decoding = time.process_time() - start
    stored = len(encoded.data) + len(encoded.dictionary or b"") + OFFSET_BYTES * len(frames)
    zipped = len(gzip.compress(frames.tobytes(), 6))
    pictures = [png(frame) for frame in frames[::64]]
    start = time.process_time()
    groups = [packed(frames[first : first + GROUP]) for first in range(0, len(frames), GROUP)]
    packing = time.process_time() - start
    sizes = (stored, sum(map(nbytes, groups)), zipped, sum(pictures) / len(pictures) * len(frames))
    times = (encoding, decoding / rows.size * len(frames), packing)
    return *(size / len(frames) for size in sizes), *(spent / len(frames) * 1e6 for spent in times)


def recording(frames: np.ndarray) -> None:
    """Record these frames in 64 lanes as fast as possible, and print the speed."""
    rows = np.resize(frames, (RECORDED // RECORDED_LANES + 1, RECORDED_LANES, *SPEC.frame_shape))
    action, reward = np.zeros(RECORDED_LANES, np.int32), np.zeros(RECORDED_LANES, np.float32)
    never, spent = np.zeros(RECORDED_LANES, bool), []
    with tempfile.TemporaryDirectory() as folder:
        start, cpu = time.perf_counter(), time.process_time()
        with Recorder(folder, SPEC, lanes=RECORDED_LANES) as recorder:
            for now, then in pairwise(rows):
                began = time.perf_counter()
                recorder.add(now, action, reward, never, never, then)
                spent.append(time.perf_counter() - began)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"recording {RECORDED_LANES} lanes: {np.median(spent) * 1e6:.0f} us to add a step of all (median),")
    print(f"{cpu / RECORDED * 1e6:.0f} us of CPU time per frame, until it is on disk;")
    print(f"{RECORDED / seconds:,.0f} frames/s without any other work on {os.cpu_count()} cores")


def main() -> None:
    folders = list(filter(None, os.environ.get("DATA", "").split(":")))
    table = Table(
        "84x84 frames",
        *("bytes stored", "packed", "gzip of all", "PNG", "us to encode", "us to decode", "us to pack"),
        title="atari",
    )
    found = []
    for name in folders or GAMES:
        frames = recorded(name) if folders else played(name)
        found.append(figures(frames))
        table.add_row(Path(name).name, *(f"{value:,.1f}" for value in found[-1]))
    average = np.mean(found, axis=0)
    table.add_row("average", *(f"{value:,.1f}" for value in average))
    Console().print(table)
    print(f"{average[0]:.0f} stored bytes per frame, with offsets and dictionary (promised: {PROMISED})")
    print(
        f"raw frames are {np.prod(SPEC.frame_shape) / average[0]:.0f} times larger; gzip has no random access"
    )
    recording(frames)
