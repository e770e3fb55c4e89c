"""Memory that a worker of the suite gives back: it compiles thousands of programs, of a megabyte each."""

import ctypes
import gc
import sys
from pathlib import Path

LARGE = 2**30  # bytes
PAGE = 4096


def resident() -> int:
    """The bytes of memory that this process has; many where the system does not say."""
    try:
        return PAGE * int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 2 * LARGE


def forget_programs() -> None:
    if jax := sys.modules.get("jax"):
        jax.clear_caches()
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # without it the C library keeps what was freed
    if trim is not None:
        trim(0)
