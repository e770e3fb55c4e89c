"""JAX as the tests use it: on the CPU, with little optimisation, and with one folder of compiled programs.

It is imported before JAX, which reads these variables once. Processes that tests start inherit them, so that
all of them round alike.
"""

import os
import sys
from importlib.metadata import version
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
# (B, 1) - (B,) is nearly always a mistake; here it is an error, in the processes of tests too.
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
# Container images forbid Python to keep what it compiled. Then every process compiles all sources it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Many a test starts the same program in a process of its own: what one has compiled serves all of them.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parents[2] / ".pytest_cache" / "compiled")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
# Programs here run for milliseconds, and XLA takes seconds to polish them.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
# Each operation of a program would name up to 100 callers, and under pytest there are so many.
os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"
if version("jaxlib").startswith("0.10."):  # newer ones end the process at this flag
    # The older emitters compile in a third of the time; in one piece a program takes a sixth less than in 32.
    flags = ("--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1")
    os.environ["XLA_FLAGS"] = " ".join(flags)
