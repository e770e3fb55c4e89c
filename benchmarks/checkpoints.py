"""The share of the time that checkpoints take: five fused Atari seeds of REM, at the default interval.

The loop is held only while the state is copied to the host; a thread writes it meanwhile. Its processor time
is taken from the learner where all cores are busy, so it counts too.
"""

import os
import tempfile
import time
from functools import partial
from pathlib import Path

import jax

from optimist.agents import preset
from optimist.data import Spec
from optimist.training.learner import Learner
from optimist.training.services import Saver
from optimist.training.settings import Training
from optimist.training.storage.checkpoint import save_state

SPEC = Spec((84, 84, 1), "uint8", actions=18, stack=4)
SEEDS = tuple(range(5))
INTERVAL = Training().checkpoint_seconds  # the default
ROUNDS = 5


def main() -> None:
    state = Learner(preset("rem"), SPEC).init(SEEDS)
    healthy = jax.tree.map(lambda leaf: leaf + 0, state.params)  # as the guard keeps them
    jax.block_until_ready((state, healthy))
    tree = {**state._asdict(), "health": healthy}
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
    held, worked, spent = [], [], []
    with tempfile.TemporaryDirectory() as name:
        for step in range(1, ROUNDS + 1):
            saver, used = Saver(), list[float]()

            def write(tree, step=step, used=used) -> None:
                before = time.thread_time()
                save_state(Path(name), step, tree)
                used.append(time.thread_time() - before)

            start = time.perf_counter()
            saver.begin(partial(write, jax.device_get(tree)))
            held.append(time.perf_counter() - start)
            saver.wait()
            worked.append(used[0])
            spent.append(saver.seconds)
    cores = len(os.sched_getaffinity(0))
    share = (min(held) + min(worked) / cores) / INTERVAL
    where = jax.devices()[0].platform
    print(f"a checkpoint of {len(SEEDS)} fused Atari seeds of REM, {size / 2**20:,.0f} MiB, on {where}:")
    print(f"written in {min(spent):.2f} s, and the loop is held for {min(held):.3f} s")
    print(f"the thread takes {min(worked):.2f} s of one of {cores} cores")
    print(f"{100 * share:.2f}% of the time, with a checkpoint every {INTERVAL:g} s (promised: at most 1%)")


if __name__ == "__main__":
    main()
