"""The GPUs of this machine, and which worker uses which of them."""

import importlib.util
import os
import subprocess
import sys

from optimist.envs._processes import variables
from optimist.training.memory import RUNS_PER_GPU, RUNS_PER_MACHINE

VISIBLE = "CUDA_VISIBLE_DEVICES"
RUNS_PER_GPU_DEFAULT = 3  # one run alone leaves a GPU idle at times
ANSWER_SECONDS = 120  # for JAX to find the devices; a cold file system takes long
PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")
# JAX is asked in another process: in this one it would reserve memory on a GPU until the study ends.
QUESTION = "import jax; print(jax.default_backend(), jax.local_device_count())"


def gpus() -> list[str]:
    """The GPUs that JAX would use here, by their names for CUDA_VISIBLE_DEVICES; empty on a CPU."""
    if os.environ.get("JAX_PLATFORMS") == "cpu" or not any(map(importlib.util.find_spec, PLUGINS)):
        return []
    environment = {**variables(), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        asked = subprocess.run(
            [sys.executable, "-P", "-c", QUESTION],
            env=environment,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
        )
        backend, count = asked.stdout.split()
    except (subprocess.TimeoutExpired, ValueError):
        return []
    return _names(int(count)) if backend == "gpu" else []


def _names(count: int) -> list[str]:
    chosen = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    return (chosen or [str(number) for number in range(count)])[:count]


def least_used(gpus: list[str], in_use: list[str | None]) -> str | None:
    """The GPU for one more worker: the first of those with the fewest workers; None without GPUs."""
    return min(gpus, key=in_use.count) if gpus else None


def share(gpu: str | None, runs: int, gpus: int) -> dict[str, str]:
    """Environment variables of one of `runs` workers, which share this machine and its GPUs."""
    found = {RUNS_PER_MACHINE: str(runs)}
    if gpu is not None:
        found |= {VISIBLE: gpu, RUNS_PER_GPU: str(-(-runs // gpus))}
    if runs > gpus:  # several processes share one device: none may reserve all of its memory
        found["XLA_PYTHON_CLIENT_PREALLOCATE"] = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    return found
