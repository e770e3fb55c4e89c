"""What would run for very long is refused or announced in one line before it begins."""

import pytest

from little import GAME, small, vectors
from optimist.cli.main import main
from optimist.errors import UsageError
from optimist.training.evaluation import evaluate
from optimist.training.learner import Learner, check_seeds


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
