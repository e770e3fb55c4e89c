"""The figures, one after the other: `python -m benchmarks [PART ...]`.

Two are named when they are wanted: `agents` times every agent on both networks, for accelerators; `imports`
times reading DQN Replay logs of real Atari frames, and needs ale-py.
"""

import importlib
import sys

PARTS = ("learner", "storage", "memory")

for part in sys.argv[1:] or PARTS:
    importlib.import_module(f"benchmarks.{part}").main()
