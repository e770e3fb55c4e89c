"""The CSVs of this page from the folder of `first_frames.py`, or from its unpacked found.tar.gz.

python docs/results/first-frames/gather.py FOLDER docs/results/first-frames

FOLDER/device.txt, if there is one, is the output of
nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used --format=csv,noheader,nounits -l 1
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from gathering import write, write_players, write_progress, write_runs

NAMES = {
    "dqn_nature": "DQN (Nature)",
    "dqn_adam": "DQN (Adam)",
    "qr_dqn": "QR-DQN",
    "rem": "REM",
    "dqn_adam_tf32": "DQN (Adam), tf32",
    "rem_tf32": "REM, tf32",
}


def device(path: Path, began: float) -> list[list[str]]:
    """Second, percent busy and MiB used, of every line."""
    found = []
    for line in path.read_text().splitlines():
        clock, busy, used, *_ = (word.strip() for word in line.split(","))
        seconds = datetime.strptime(clock, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp() - began
        found.append([f"{seconds:.1f}", busy, used])
    return found


def main() -> None:
    folder, out = map(Path, sys.argv[1:])
    write_runs(folder, out, "atari/Pong", NAMES)
    write_players(folder, out)
    began = write_progress(folder, out)
    if (folder / "device.txt").exists():
        write(out / "device.csv", ["seconds", "busy", "mib"], device(folder / "device.txt", began))


if __name__ == "__main__":
    main()
