"""A run that is killed and continued raises the same alarms at the same steps, because the guard's knowledge
is a part of the checkpoint."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from little import begin, lines, outcome, wait_for
from patience import PATIENCE

KILLS = int(os.environ.get("OPTIMIST_KILLS", "5"))
TESTS = str(Path(__file__).parents[2] / "support")  # where a child process finds what tests share
DIVERGES = """
import sys
sys.path.insert(0, sys.argv[3])
import numpy as np
from little import small
from optimist.data import from_arrays
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training

at = np.arange(64)
log = from_arrays(np.stack([np.ones(64), at % 8 / 8], axis=1).astype(np.float32), at % 16 // 15, np.ones(64),
                  at % 8 == 7, truncations=False)
agent = small("dqn", **{"target_period": 1, "optimizer.learning_rate": 1e-2})
training = Training(steps=3000, evaluate_every=50, batch=16, observations="none", checkpoint_seconds=0,
                    on_divergence=sys.argv[2])
OfflineTraining(agent, log, training, out=sys.argv[1], seeds=(3, 5)).run()
"""


def run(out, response: str, compiled):
    return begin(str(out), response, TESTS, program=DIVERGES, compiled=compiled)


@pytest.mark.slow  # `test_guard.py` stops and continues such runs without a kill, in seconds
@pytest.mark.parametrize("response", ["freeze", "continue"])
def test_a_killed_run_raises_the_same_alarms(tmp_path, response):
    killed, straight, random = tmp_path / "killed", tmp_path / "straight", np.random.default_rng(KILLS)
    for _ in range(KILLS):
        before = lines(killed / "metrics.jsonl")
        more = int(random.integers(3, max(4, 50 // KILLS)))
        with run(killed, response, tmp_path / "compiled") as child:
            wait_for(lambda least=before + more: lines(killed / "metrics.jsonl") > least, child)
            child.kill()
        assert child.returncode == -signal.SIGKILL, "it was done before it was killed"
    for out in (killed, straight):
        with run(out, response, tmp_path / "compiled") as child:
            assert child.wait(timeout=PATIENCE) == 0, child.communicate()[1]
    assert outcome(killed) == outcome(straight)
    alarms = [(out / "alarms.json").read_bytes() for out in (killed, straight)]
    assert alarms[0] == alarms[1] and b'"3"' in alarms[0]
