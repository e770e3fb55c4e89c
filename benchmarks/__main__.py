"""The figures, one after the other: `python -m benchmarks [PART ...]`.

`agents` times every agent on both networks; it is for accelerators, and named when it is wanted. So are
`atari` and `streaming`, the figures of 84x84 frames: they play real games and fill a few GB of disk.
"""

import importlib
import sys

PARTS = ("learner", "storage", "memory")

for part in sys.argv[1:] or PARTS:
    importlib.import_module(f"benchmarks.{part}").main()
