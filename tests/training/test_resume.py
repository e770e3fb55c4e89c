"""Killed at a random moment and started again, a run ends with the bits of one that was left alone."""

import signal
import time

import numpy as np
import pytest

from little import PATIENCE, begin, lines, outcome, small_words, wait_for
from optimist.actor_critic import ActorCritic
from optimist.agents import available, preset


@pytest.mark.parametrize("name", available())
def test_kill_9_changes_no_bit_of_the_outcome(name, log, control_log, tmp_path):
    log = control_log if isinstance(preset(name), ActorCritic) else log
    settings = ["--steps", 500, "--evaluate-every", 20, "--episodes", 2, "--checkpoint-seconds", 0]
    words = [*map(str, ["train", name, log, *settings, "--seeds", "3,5", *small_words(name)])]
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
