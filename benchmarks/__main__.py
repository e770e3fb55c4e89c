"""Runs the benchmarks one after the other: `python -m benchmarks [PART ...]`.

Without a name it runs `learner`, `storage` and `memory`, which take minutes on any machine. The others:

agents        every agent on both networks (accelerators)
gpu_learner   the Atari network by precision, seeds and batch, and every kernel (accelerators)
environments  are they kept busy (accelerators)
collection    where the time of Atari's collection goes (accelerators)
games         MinAtar on the host and on the device
control       the agents of action vectors
defaults      every agent with its defaults on small logs with a known best policy (30 minutes)
bootstrap     intervals over runs and games
saving        ten million vector steps into a dataset folder
formats       the import of tables and Minari datasets (the extra `minari`)
report        the page of a study of 300 runs
grid          the paper's grid on a cluster, with training of seconds
selection     FQE of 25 policies
choice        does `optimist select` answer truly? Logs of three simulators with exactly known values
checkpoints   the share of the time that checkpoints take
looks         the share of the time that the guard against divergence takes
checks        the share of the time that hashes and checks take
first_action  the time to a policy's first action
cpu_parts     the parts of one update of the Atari network, ours beside PyTorch (OPTIMIST_PEERS has torch)
growth        the cost by heads, batch size, seeds and steps
workers       the learner's rate by the number of processes on one GPU
paper_cost    the paper's grid in days of GPUs
peers         updates per second beside PyTorch's and d3rlpy's (OPTIMIST_PEERS names a Python that has them)
homes         batches from Atari-like frames by where they are
online        returns of online play beside Stable-Baselines3's (OPTIMIST_PEERS names a Python that has it)
conservative  returns beside d3rlpy's (OPTIMIST_PEERS names a Python that has it)
packed        the learner's rate by the home of its data (ale-py)
atari         bytes and times of 84x84 frames (ale-py, a few GB of disk; as the next two)
streaming     batches from compressed shards
imports       the import of the public format

`optimist bench` prints one table of the machine.
"""

import importlib
import sys
from itertools import takewhile

PARTS = ("learner", "storage", "memory")

# Words from the first option on belong to the part before them.
for part in list(takewhile(lambda word: not word.startswith("-"), sys.argv[1:])) or PARTS:
    importlib.import_module(f"benchmarks.{part}").main()
