"""Compiled programs that all processes of this machine share, in a folder of the user's cache.

JAX keeps no lock unless the folder has a largest size; with one, several processes can use the folder. A CPU
program may use instructions that another processor lacks, and a home folder may serve different nodes: each
kind of processor has its own folder.
"""

import hashlib
import platform
from pathlib import Path

import filelock
import jax
from jax.experimental.compilation_cache import compilation_cache

from optimist.data.machine import cache_folder

LARGEST = 8 * 2**30  # bytes; the programs that were not used for longest are removed
SHORTEST = 0.0  # seconds; with a threshold the load of the machine would decide which programs are kept


def share_compiled() -> None:
    """Let this process use the shared programs, unless JAX's settings name a folder, or none."""
    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
        return
    folder = cache_folder() / "compiled" / _processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_interrupted(folder)
    except OSError:  # a home folder that cannot be written: every process compiles for itself
        return
    jax.config.update("jax_compilation_cache_max_size", LARGEST)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    compilation_cache.reset_cache()  # JAX looks for a folder once, and the user may have compiled before


def _remove_interrupted(folder: Path) -> None:
    """Remove what a killed process left half written: JAX would fail on it, and keep nothing more.

    JAX writes the time of a program's last use after the program itself."""
    try:
        with filelock.FileLock(folder / ".lockfile", timeout=0):
            for program in folder.glob("*-cache"):
                if not program.with_name(f"{program.name.removesuffix('-cache')}-atime").exists():
                    program.unlink()
    except filelock.Timeout:  # another process writes now; the next one looks
        return


def _processor() -> str:
    """A name for the instructions of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    instructions = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    words = " ".join(sorted(instructions.partition(":")[2].split())) or platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
