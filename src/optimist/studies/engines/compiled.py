"""Compiled programs that all runs share, in a folder of the user's cache.

JAX keeps no lock unless the folder has a largest size; with one, several processes can use the folder. A CPU
program may use instructions that another processor lacks, and a home folder may serve different nodes: each
kind of processor has its own folder.
"""

import hashlib
import os
import platform
from pathlib import Path

import jax

LARGEST = 8 * 2**30  # bytes; the programs that were not used for longest are removed
CACHE = "XDG_CACHE_HOME"


def cache_folder() -> Path:
    """The folder of everything that can be made again."""
    return Path(os.environ.get(CACHE) or Path.home() / ".cache") / "optimist"


def share_compiled() -> None:
    """Let this process use the shared programs, unless the user chose a folder by JAX's own setting."""
    if jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return
    folder = cache_folder() / "compiled" / _processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home folder that cannot be written: every run compiles for itself
        return
    jax.config.update("jax_compilation_cache_max_size", LARGEST)
    jax.config.update("jax_compilation_cache_dir", str(folder))


def _processor() -> str:
    """A name for the instructions of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    instructions = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    words = " ".join(sorted(instructions.partition(":")[2].split())) or platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
