"""What cannot fit into memory, or would not end, is refused in one line before any of it is begun."""

import resource
import time

import jax
import pytest

from little import GAME, small, vectors
from optimist.cli.main import main
from optimist.errors import UsageError
from optimist.training import memory
from optimist.training.evaluation import evaluate
from optimist.training.learner import Learner, check_seeds
from optimist.training.offline import OfflineTraining
from optimist.training.online import OnlineTraining
from optimist.training.settings import Collection, Training


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        ("train rem LOG --batch 1e8", "batches "),
        ("train rem LOG --columns 1e9", "parameters "),
        ("train rem LOG --columns 1e18", "parameters "),
        ("train rem LOG --networks 1e9 --columns 1e9", "parameters "),
        ("train qr_dqn LOG --columns 1e9", "parameters "),
        ("train rem LOG --episodes 1e9", "evaluation "),
        ("train rem LOG --seeds 0-999999999", "too many seeds"),
        ("train rem LOG --n-step 1e9", "n_step is 1000000000: it must be at most 1000"),
        ("train rem LOG --target-period 1e18", "target_period is 1000000000000000000"),
        (f"collect {GAME} --lanes 1e9", "lanes and replay window "),
        (f"collect {GAME} --window 1e18", "lanes and replay window "),
        (f"collect {GAME} --batch 1e9", "batches "),
        (f"collect {GAME} --evaluate-every 10 --episodes 1e9", "evaluation "),
    ],
)
def test_an_absurd_size_is_one_line_at_once_and_writes_nothing(log, tmp_path, capsys, words, phrase):
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = [str(log) if word == "LOG" else word for word in words.split()]
    assert main([*line, "--out", str(tmp_path / "out")]) == 2
    assert time.monotonic() - begun < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # KiB
    complaint = capsys.readouterr().err
    assert complaint.startswith("optimist: ") and complaint.count("\n") == 1 and phrase in complaint
    if phrase.endswith(" "):
        assert "needs at least" in complaint and complaint.count(" GiB") >= 3
    assert not (tmp_path / "out").exists()


def test_as_much_as_there_is_may_be_taken(tmp_path, monkeypatch):
    """The estimate is a lower bound: what it refuses cannot run."""
    learner = Learner(small("dqn"), vectors().spec)
    needed = memory.state_bytes(learner, 2) + memory.batch_bytes(learner.spec, batch=8, seeds=2, chunk=20)
    training = {"training": Training(steps=20, batch=8), "out": tmp_path, "seeds": (0, 1)}
    monkeypatch.setattr(memory, "available_bytes", lambda: needed)
    OfflineTraining(small("dqn"), vectors(), **training).prepare()
    monkeypatch.setattr(memory, "available_bytes", lambda: needed - 1)
    with pytest.raises(UsageError, match="needs at least"):
        OfflineTraining(small("dqn"), vectors(), **training).prepare()


def test_a_collection_is_weighed_before_its_lanes_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**6)
    with pytest.raises(UsageError, match="lanes and replay window"):
        OnlineTraining(small("dqn"), GAME, Collection(lanes=10_000), out=tmp_path / "out")


def test_the_state_is_weighed_to_the_byte():
    learner = Learner(small("rem"), vectors().spec)
    state = learner.init((3, 5))
    real = sum(leaf.nbytes for leaf in jax.tree.leaves((state, state.params)))
    assert abs(memory.state_bytes(learner, 2) - real) < 16  # the count of steps is shared


@pytest.mark.parametrize("words", ["train rem LOG", f"collect {GAME} --evaluate-every 10"])
def test_an_evaluation_that_would_not_end_is_refused(log, tmp_path, capsys, words):
    line = words.replace("LOG", str(log)).split()
    assert main([*line, "--evaluation-steps", "1e18", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "1,000,000,000,000,000,000 steps of an evaluation: choose at most" in said
    assert said.count("\n") == 1 and not (tmp_path / "out").exists()


def test_so_is_that_of_a_trained_run():
    learner = Learner(small("dqn"), vectors().spec)
    with pytest.raises(UsageError, match="choose at most"):
        evaluate(learner, {}, GAME, seeds=(0,), episodes=1, steps=10**18)


@pytest.mark.parametrize(("count", "told"), [(100, 0), (1000, 1)])
def test_many_seeds_are_announced(caplog, count, told):
    check_seeds(tuple(range(count)))
    assert len(caplog.records) == told
    assert not told or caplog.messages[0].startswith("1,000 seeds are trained at once: every step takes")
