"""The settings of JAX: its numbers, and compiled programs that all processes of this machine share, in a
folder of the user's cache.

JAX keeps no lock unless the folder has a largest size; with one, several processes can use the folder. A CPU
program may use instructions that another processor lacks, and a home folder may serve different nodes: each
kind of processor has its own folder.

With a largest size JAX reads a file of every kept program before it keeps another, 0.1 ms each: with 5,000 of
them every new program took half a second. Here the size is checked once, when a process begins.
"""

import hashlib
import logging
import os
import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path

import filelock
import jax
from jax.experimental.compilation_cache import compilation_cache

try:
    from jax._src.lru_cache import LRUCache
except ImportError:  # not public: a later version of JAX may do without
    LRUCache = None  # type: ignore[assignment, misc]

from optimist.data.machine import cache_folder

LARGEST = 8 * 2**30  # bytes; the programs that were not used for longest are removed
PATIENCE = 1.0  # seconds; other processes hold the lock for milliseconds
SHORTEST = 0.0  # seconds; with a threshold the load of the machine would decide which programs are kept
NUMBERS = {  # what every result depends on and the tests have: no variable such as JAX_ENABLE_X64 changes it
    "jax_enable_x64": False,
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
}
log = logging.getLogger("optimist")


@cache
def set_up_jax() -> None:
    """Let JAX compute in float32 with the random numbers of one generator, and use the shared programs.

    The first learner of a process does this; importing this package changes nothing."""
    for name, value in NUMBERS.items():
        jax.config.update(name, value)
    _share_compiled()


def _share_compiled() -> None:
    """Use the shared programs, unless JAX's settings name a folder, or none."""
    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
        return
    folder = cache_folder() / "compiled" / _processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _tidy(folder, _eviction_from(folder))
    except filelock.Timeout:  # JAX would wait ten seconds for each program
        log.warning("%s is locked by another process: programs are compiled again", folder)
        return
    except OSError:  # a home folder that cannot be written or locked: every process compiles for itself
        return
    jax.config.update("jax_compilation_cache_max_size", LARGEST)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    compilation_cache.reset_cache()  # JAX looks for a folder once, and the user may have compiled before


def _tidy(folder: Path, evict: Callable | None) -> None:
    """Remove what a killed process left half written, on which JAX would fail, and what is beyond the largest
    size, the programs that were not used for longest first.

    JAX writes the time of a program's last use after the program itself."""
    with filelock.FileLock(folder / ".lockfile", timeout=PATIENCE):
        sizes = {file.name: file.stat().st_size for file in os.scandir(folder)}
        for name in sizes:
            if name.endswith("-cache") and f"{name.removesuffix('-cache')}-atime" not in sizes:
                (folder / name).unlink()
        if evict and sum(sizes.values()) > LARGEST:
            evict(LRUCache(str(folder), max_size=LARGEST))


def _eviction_from(folder: Path) -> Callable | None:
    """JAX's removal of programs, which from now on it does not begin by itself in this folder; None if this
    version of JAX has no such method, and goes on as it does."""
    evict: Callable | None = getattr(LRUCache, "_evict_if_needed", None)
    if evict is None:
        return None

    def elsewhere(cache, **size) -> None:
        if str(cache.path) != str(folder):
            evict(cache, **size)

    LRUCache._evict_if_needed = elsewhere  # type: ignore[method-assign, assignment]
    return evict


def _processor() -> str:
    """A name for the instructions of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    instructions = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    words = " ".join(sorted(instructions.partition(":")[2].split())) or platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
