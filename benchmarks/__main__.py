"""All figures, one after the other: `python -m benchmarks [learner|memory|storage ...]`."""

import importlib
import sys

PARTS = ("learner", "storage", "memory", "agents")

for part in sys.argv[1:] or PARTS:
    importlib.import_module(f"benchmarks.{part}").main()
