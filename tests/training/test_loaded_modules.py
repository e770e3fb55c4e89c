"""A newcomer who follows `optimist train` through the package has few files to open."""

import subprocess
import sys

from little import vectors

MOST = 90  # of our modules, the agent, its bases and the loggers among them; it only goes down
PROGRAM = """
import sys
from optimist.cli import index
from optimist.cli.main import main
index.environments()  # made once, from every agent and environment, and kept until a file changes
loaded = lambda: sorted(name for name in sys.modules if name.partition(".")[0] == "optimist")
code = main(sys.argv[1:]) if len(sys.argv) > 1 else 0
print(*loaded(), sep="\\n")
sys.exit(code)
"""


def test_training_on_a_vector_log_loads_few_of_our_modules(tmp_path):
    vectors().save(tmp_path / "log")
    words = ["train", "dqn", tmp_path / "log", "--out", tmp_path / "run", "--steps", 20, "--batch", 4]
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)], capture_output=True, text=True, check=True
    )
    loaded = [line for line in ran.stdout.splitlines() if line.startswith("optimist")]
    assert "optimist.training.offline" in loaded
    assert len(loaded) <= MOST, "\n".join(loaded)
    unneeded = ("online", "beginning", "play.replay", "play.playing", "play.video", "export", "loggers.wandb")
    assert not {f"optimist.training.{name}" for name in unneeded} & set(loaded)
