"""Stored bytes and recording time per MinAtar frame of random play, beside the raw size."""

import tempfile
import time

import numpy as np

from optimist import envs
from optimist.data import Dataset, Recorder, Sampler, transitions

STEPS, LANES = 40_000, 16


def main() -> None:
    play, random = envs.make("minatar/breakout", lanes=LANES, seed=0), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        spent, frame = 0.0, play.reset()
        with Recorder(folder, play.spec, lanes=LANES) as recorder:
            for _ in range(STEPS // LANES):
                action = random.integers(0, play.spec.actions, LANES).astype(np.int32)
                taken = play.step(action)
                start = time.perf_counter()
                recorder.add(
                    frame, action, taken.reward, taken.terminal, taken.truncated, taken.next_observation
                )
                spent += time.perf_counter() - start
                frame = taken.observation
        dataset = Dataset.open(folder)
        source = dataset.timeline.source
        sampler = Sampler(dataset)
        start = time.perf_counter()
        for step in range(200):
            transitions(sampler, sampler.positions(step, 1)[0], dataset.timeline.frames)
        batches = 200 / (time.perf_counter() - start)
    stored = source.frame_bytes / dataset.timeline.frame_count
    print(f"MinAtar breakout: {stored:.1f} stored bytes per frame, 400 raw, 50 as bits")
    print(f"recording takes {spent / STEPS * 1e6:.0f} us per step")
    print(f"batches of 32 straight from compressed shards: {batches:,.0f} per second on one thread")
