"""The CSVs of this page from the folder of `own_logs.py`, or from its unpacked found.tar.gz.

python docs/results/pong/gather.py FOLDER docs/results/pong
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from gathering import write_device, write_players, write_progress, write_runs

NAMES = {
    "dqn_adam": "DQN (Adam)",
    "rem": "REM",
    "rem_head_epsilon": "REM, head epsilon / 200",
    "dqn_adam_float32": "DQN (Adam), float32",
}


def main() -> None:
    folder, out = map(Path, sys.argv[1:])
    write_runs(folder, out, "atari/Pong", NAMES)
    write_players(folder, out)
    write_device(folder, out, write_progress(folder, out))


if __name__ == "__main__":
    main()
