"""A run that was stopped and resumed ends with the same bits as a run without a stop: for every agent if it
stopped by itself, for one agent of each kind if it was killed at a random moment."""

import signal
import time

import numpy as np
import pytest

from little import begin, lines, outcome, small, small_words, wait_for
from optimist.agents import available, preset
from optimist.agents._actor_critic import ActorAgent
from optimist.data import Dataset
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training
from patience import PATIENCE


@pytest.fixture
def data(name, log, control_log):
    """What this agent can learn from."""
    return control_log if isinstance(preset(name), ActorAgent) else log


# One agent of each way to keep state: heads, a distribution, separate networks, a learned behaviour, delayed
# actors, a random key alone. The others are slow because each compiles its own programs.
KINDS = {"rem", "c51", "bootstrapped_dqn", "discrete_bcq", "td3", "random"}
EVERY_AGENT = [pytest.param(name, marks=() if name in KINDS else pytest.mark.slow) for name in available()]


@pytest.mark.parametrize("name", EVERY_AGENT)
def test_every_agent_goes_on_to_the_same_bits(name, data, tmp_path):
    dataset, twice, straight = Dataset.open(data), tmp_path / "twice", tmp_path / "straight"
    for out, steps in ((twice, 40), (twice, 100), (straight, 100)):
        training = Training(steps=steps, evaluate_every=20, episodes=2, batch=8)
        # To compile the play of every agent takes longer than all the rest.
        environment = dataset.provenance["environment"] if name == "rem" else None
        OfflineTraining(small(name), dataset, training, out=out, seeds=(3, 5), environment=environment).run()
    assert outcome(twice) == outcome(straight)
    if environment:
        rows = (twice / "episodes.csv").read_text().splitlines()
        assert len(rows) == len(set(rows)) == 1 + 5 * 2 * 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rem", "td3"])
def test_kill_9_changes_no_bit_of_the_outcome(name, data, tmp_path):
    settings = ["--steps", 500, "--evaluate-every", 20, "--episodes", 2, "--checkpoint-seconds", 0]
    words = [*map(str, ["train", name, data, *settings, "--seeds", "3,5", *small_words(name)])]
    killed, random = tmp_path / "killed", np.random.default_rng(len(name))
    for _ in range(2):
        before = lines(killed / "metrics.jsonl")
        with begin(*words, "--out", killed, compiled=tmp_path / "compiled") as child:
            wait_for(lambda before=before: lines(killed / "metrics.jsonl") > before, child)
            time.sleep(random.uniform(0, 0.4))
            child.kill()
        assert child.returncode == -signal.SIGKILL, "it was done before it was killed"
    assert not (killed / "DONE").exists()
    for out in (killed, tmp_path / "straight"):
        with begin(*words, "--out", out, compiled=tmp_path / "compiled") as child:
            assert child.wait(timeout=PATIENCE) == 0, child.communicate()[1]
    assert outcome(killed) == outcome(tmp_path / "straight")
    rows = (killed / "episodes.csv").read_text().splitlines()
    assert len(rows) == len(set(rows)) == 1 + 25 * 2 * 2
