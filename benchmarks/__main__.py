"""The figures, one after the other: `python -m benchmarks [PART ...]`.

`agents` times every agent on both networks; it is for accelerators, and named when it is wanted.
"""

import importlib
import sys

PARTS = ("learner", "storage", "memory", "imports")

for part in sys.argv[1:] or PARTS:
    importlib.import_module(f"benchmarks.{part}").main()
