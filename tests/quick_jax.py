"""JAX as the tests use it: on the CPU, with little optimisation, and with one folder of compiled programs.

It is imported before JAX, which reads these variables once. Processes that tests start inherit them, so that
all of them round alike.
"""

import os
from importlib.metadata import version
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
# Many a test starts the same program in a process of its own: what one has compiled serves all of them.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parent.parent / ".pytest_cache" / "compiled")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
# Programs here run for milliseconds, and XLA takes seconds to polish them.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
if version("jaxlib").startswith("0.10."):  # newer ones end the process at this flag
    # The older emitters compile in a third of the time.
    os.environ["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false"
