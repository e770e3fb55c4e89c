"""The CSVs of this page from the folder of `first_frames.py`, or from its unpacked found.tar.gz.

python docs/results/first-frames/gather.py FOLDER docs/results/first-frames
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from gathering import write_device, write_players, write_progress, write_runs

NAMES = {
    "dqn_nature": "DQN (Nature)",
    "dqn_adam": "DQN (Adam)",
    "qr_dqn": "QR-DQN",
    "rem": "REM",
    "dqn_adam_tf32": "DQN (Adam), tf32",
    "rem_tf32": "REM, tf32",
}


def main() -> None:
    folder, out = map(Path, sys.argv[1:])
    write_runs(folder, out, "atari/Pong", NAMES)
    write_players(folder, out)
    write_device(folder, out, write_progress(folder, out))


if __name__ == "__main__":
    main()
