"""Processor time from a new process to a policy's first action: `python -m benchmarks first_action`.

Each figure is that of a process of its own, the least of a few. The programs of the first action come from
the compiler (an empty cache) or from the user's cache.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TIMES = int(os.environ.get("TIMES", "3"))
SETTINGS = "JAX_"  # of JAX, which would choose another cache
MAKE = """
import numpy as np, optimist
random, shape = np.random.default_rng(0), {shape}
log = optimist.Dataset.from_arrays(
    random.integers(0, 2, (200, *shape)).astype({kind!r}), random.integers(0, 3, 200), np.zeros(200),
    np.arange(200) % 20 == 19, truncations=False, stack={stack}, actions_count=3,
)
optimist.train("rem", log, steps=2, batch=2, evaluate_every=2, environment="", hold_out=0, out={out!r})
"""
LOAD = "import numpy as np, optimist; run = optimist.load({out!r})"
ACT = LOAD + "; run.policy(np.zeros(run.learner.spec.observation_shape, run.learner.spec.frame_dtype))"
NETWORKS = {"minatar": ((10, 10, 4), "bool", 1), "nature": ((84, 84, 1), "uint8", 4)}


def processor_seconds(program: str, cache: Path) -> float:
    """The processor time of a new Python that runs this program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], env={**kept, "XDG_CACHE_HOME": str(cache)}, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(program: str, folder: Path, name: str, *, warm: bool) -> float:
    caches = [folder / (name if warm else f"{name}-{number}") for number in range(TIMES)]
    if warm:
        processor_seconds(program, caches[0])
    return min(processor_seconds(program, cache) for cache in caches)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for words in ("import optimist", "import jax", "import optimist.api"):
            print(f"{words}: {least(words, folder, 'imports', warm=True):.2f} s", flush=True)
        for network, (shape, kind, stack) in NETWORKS.items():
            out = str(folder / network)
            processor_seconds(MAKE.format(shape=shape, kind=kind, stack=stack, out=out), folder / "making")
            loaded = least(LOAD.format(out=out), folder, f"load-{network}", warm=True)
            cold, warm = (
                least(ACT.format(out=out), folder, f"act-{network}", warm=warm) for warm in (False, True)
            )
            print(f"{network}: loaded after {loaded:.2f} s; first action after {cold:.2f} s,", flush=True)
            print(
                f"{' ' * len(network)}  after {warm:.2f} s with the programs of an earlier process",
                flush=True,
            )
