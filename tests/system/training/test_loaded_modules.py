"""A newcomer who follows `optimist train` through the package has few files to open."""

import subprocess
import sys

from little import vectors

MOST = 90  # of our modules, the agent, its bases and the loggers among them; it only goes down
PROGRAM = """
import sys
from optimist.cli.main import main
code = main(sys.argv[1:])
print(*(name for name in sys.modules if name.partition(".")[0] == "optimist"), sep="\\n")
sys.exit(code)
"""


def test_training_on_a_vector_log_loads_few_of_our_modules(tmp_path):
    vectors().save(tmp_path / "log")
    words = ["train", "dqn", str(tmp_path / "log"), "--steps", "20", "--batch", "4", "--out"]
    for out in ("first", "second"):  # the first makes what help must know of all classes, and keeps it
        line = [sys.executable, "-c", PROGRAM, *words, str(tmp_path / out)]
        ran = subprocess.run(line, capture_output=True, text=True, check=True)
    loaded = sorted(line for line in ran.stdout.splitlines() if line.startswith("optimist"))
    assert "optimist.training.offline" in loaded
    assert len(loaded) <= MOST, "\n".join(loaded)
    unneeded = ("online", "beginning", "play.replay", "play.playing", "play.video", "export", "loggers.wandb")
    assert not {f"optimist.training.{name}" for name in unneeded} & set(loaded)
