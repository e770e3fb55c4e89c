"""The policies that a run keeps, so that another than the last can be used."""

import shutil

import jax
import numpy as np
import pytest

import optimist
from little import outcome, small
from optimist.cli.main import main
from optimist.data import Dataset
from optimist.errors import RunError, UsageError
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training
from optimist.training.storage.checkpoint import Policies, kept_steps
from optimist.training.storage.run_folder import RunFolder, read_config

SHORT = {"steps": 100, "evaluate_every": 20, "episodes": 1, "batch": 4, "feed": "device"}


def train(log, out, environment: str | None = "own", **settings):
    dataset = Dataset.open(log)
    where = dataset.provenance["environment"] if environment == "own" else environment
    training = Training(**{**SHORT, **settings})
    OfflineTraining(small("dqn"), dataset, training, out=out, seeds=(3, 5), environment=where).run()
    return optimist.load(out)


@pytest.fixture(scope="module")
def run(log, tmp_path_factory):
    return train(log, tmp_path_factory.mktemp("kept") / "run")


def test_every_evaluation_has_a_policy_and_the_last_is_the_runs(run):
    assert run.kept == [20, 40, 60, 80, 100]
    last = optimist.load(run.path, step=100)
    assert same(last, run)
    early = optimist.load(run.path, step="20")
    assert early.step == 20 and not np.array_equal(leaves(early)[0], leaves(run)[0])


def test_a_run_that_came_without_checkpoints_has_its_last_kept_policy(run, tmp_path, caplog):
    """As a run from the Hub comes."""
    shutil.copytree(run.path, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    came = optimist.load(tmp_path / "run")
    assert came.step == 100
    assert same(came, run)
    assert "no checkpoint: the last policy that it keeps is of step 100" in caplog.text
    with pytest.raises(RunError, match="has no checkpoint"):
        optimist.load(tmp_path / "run", step="healthy")


def leaves(run) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(run.params)]


def same(one, other) -> bool:
    return all(np.array_equal(*pair) for pair in zip(leaves(one), leaves(other), strict=True))


def test_a_policy_is_the_one_that_a_shorter_run_ends_with(run, log, tmp_path):
    shorter = train(log, tmp_path / "run", steps=40)
    kept = optimist.load(run.path, step=40)
    assert same(kept, shorter)


def test_without_an_environment_policies_are_kept_and_none_is_the_best(log, tmp_path):
    run = train(log, tmp_path / "run", environment=None, steps=40)
    assert run.kept == [20, 40]
    with pytest.raises(RunError, match="was never evaluated"):
        optimist.load(run.path, step="best")


def test_the_best_is_the_evaluation_with_the_highest_mean_over_the_seeds(log, tmp_path):
    run = train(log, tmp_path / "run", steps=60)
    rows = ["step,seed,episode,return,length"]
    for step, returns in {20: (0, 6), 40: (5, 5), 60: (9, 0)}.items():
        rows += [f"{step},{seed},0,{value}.0,7" for seed, value in zip((3, 5), returns, strict=True)]
    (run.path / "episodes.csv").write_text("\n".join(rows) + "\n")
    assert optimist.load(run.path, step="best").step == 40


def test_a_step_that_is_not_kept_is_refused(run):
    for step, problem, told in (
        (30, RunError, "keeps no policy of step 30"),
        ("bset", UsageError, 'give a number, "last", "best", "healthy" or "chosen"'),
        (-1, UsageError, "give a number"),
    ):
        with pytest.raises(problem, match=told):
            optimist.load(run.path, step=step)


def test_a_stopped_and_a_longer_run_keep_what_a_straight_one_keeps(run, log, tmp_path):
    train(log, tmp_path / "run", steps=60)
    assert kept_steps(tmp_path / "run") == [20, 40, 60]
    longer = train(log, tmp_path / "run")
    assert longer.kept == run.kept
    names = [sorted(path.name for path in (each.path / "policies").iterdir()) for each in (longer, run)]
    assert names[0] == names[1]  # a name has the hash of the content
    assert outcome(longer.path) == outcome(run.path)


def test_a_budget_thins_the_policies_evenly_and_says_so(run, log, tmp_path, caplog):
    size = sum(leaf.nbytes for leaf in leaves(run))
    few = train(log, tmp_path / "run", keep_policies=3.5 * size / 2**30)  # room for three, one for the last
    assert few.kept == [60, 100]
    assert "that of one of 3 evaluations is kept" in caplog.text
    names = {path.name for path in (few.path / "policies").iterdir()}
    assert names < {path.name for path in (run.path / "policies").iterdir()}
    assert sum(path.stat().st_size for path in (few.path / "policies").iterdir()) <= 3.5 * size


def test_no_budget_keeps_nothing_and_too_little_says_so(log, tmp_path, caplog):
    assert train(log, tmp_path / "none", keep_policies=0, steps=40).kept == []
    assert "policies" not in caplog.text
    assert train(log, tmp_path / "little", keep_policies=1e-9, steps=40).kept == []
    assert "that of no evaluation is kept" in caplog.text


def test_however_small_they_are_there_are_at_most_a_thousand(tmp_path, caplog):
    tiny = {"q": np.zeros(1, np.float32)}
    policies = Policies(tmp_path, Training(steps=10**6, evaluate_every=1), tiny)
    assert sum(policies._wanted(step) for step in range(1, 10**6 + 1)) <= 1000
    assert "at most 1,000 policies are kept: that of one of 1002 evaluations is kept" in caplog.text
    assert "--keep-policies" not in caplog.text  # more room would not help


def test_restart_removes_the_policies(log, tmp_path):
    train(log, tmp_path / "run", steps=40)
    dataset = Dataset.open(log)
    training = Training(**{**SHORT, "steps": 20})
    OfflineTraining(small("dqn"), dataset, training, out=tmp_path / "run", seeds=(3, 5), restart=True).run()
    assert kept_steps(tmp_path / "run") == [20]


def test_a_damaged_policy_is_refused(log, tmp_path, caplog):
    run = train(log, tmp_path / "run", steps=20)
    (path,) = (run.path / "policies").iterdir()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunError, match="is damaged"):
        optimist.load(run.path, step=20)


def moved(path, step: int):
    """The file under the name of another step: the hash in the name is that of the content."""
    return path.rename(path.with_name(f"step-{step:012d}-{path.name.split('-')[-1]}"))


def test_a_policy_under_the_name_of_another_step_is_refused(log, tmp_path, capsys):
    run = train(log, tmp_path / "run", steps=40)
    early, last = sorted((run.path / "policies").iterdir())
    last.unlink()
    early = moved(early, 40)
    with pytest.raises(RunError, match="is not a checkpoint of this step, it says step 20"):
        optimist.load(run.path, step=40)
    assert main(["doctor", str(run.path)]) == 4
    assert f"{early} is not a checkpoint of this step" in capsys.readouterr().out


def test_a_policy_of_another_run_is_refused(run, log, tmp_path, capsys):
    other = train(log, tmp_path / "run", steps=40, batch=5)
    (theirs,) = (run.path / "policies").glob("step-*40-*")
    (own,) = (other.path / "policies").glob("step-*40-*")
    own.unlink()
    shutil.copy(theirs, own.parent)
    with pytest.raises(RunError, match=f"{theirs.name} was made with another configuration: remove it"):
        optimist.load(other.path, step=40)
    assert main(["doctor", str(other.path)]) == 4
    assert f"{theirs.name} was made with another configuration" in capsys.readouterr().out


def test_a_checkpoint_under_the_name_of_another_step_is_not_trained_on(run, log, tmp_path, caplog, capsys):
    """Training went on from step 80 as if it were step 90, to other bits."""
    shutil.copytree(run.path, tmp_path / "run")
    newest = moved(max((tmp_path / "run" / "checkpoints").iterdir()), 180)
    assert main(["doctor", str(tmp_path / "run")]) == 4
    assert f"{newest} is not a checkpoint of this step, it says step 100" in capsys.readouterr().out
    with pytest.raises(RunError, match="it says step 100.*start again with --restart"):
        optimist.load(tmp_path / "run")
    with pytest.raises(RunError, match="it says step 100.*start again with --restart"):
        train(log, tmp_path / "run", steps=200)


def test_a_checkpoint_of_another_run_is_refused(run, log, tmp_path, capsys):
    other = train(log, tmp_path / "run", steps=40, batch=5)
    theirs = shutil.copy(max((run.path / "checkpoints").iterdir()), other.path / "checkpoints")
    for ask in (lambda: optimist.load(other.path), lambda: train(log, other.path, steps=60, batch=5)):
        with pytest.raises(RunError, match="was made with another configuration: remove it"):
            ask()
    assert main(["doctor", str(other.path)]) == 4
    assert f"{theirs} was made with another configuration" in capsys.readouterr().out


def test_policies_after_the_checkpoint_are_removed_when_the_run_continues(log, tmp_path):
    """Training comes to these steps again."""
    run = train(log, tmp_path / "run", steps=40)
    with RunFolder(run.path, read_config(run.path)) as folder:
        Policies(run.path, Training(**SHORT), run.params, folder.fingerprint).keep(60, run.params)
    assert kept_steps(run.path) == [20, 40, 60]
    with pytest.raises(StoppedError):
        train(log, run.path, steps=100, loggers=[Stopping])
    assert kept_steps(run.path) == [20, 40]


class StoppedError(Exception):
    pass


class Stopping:
    """A logger that stops the run at the first row."""

    def __init__(self, *_, **__):
        pass

    def add(self, *_):
        raise StoppedError

    def close(self):
        pass


def test_the_command_line_evaluates_and_films_a_kept_policy(run, tmp_path, capsys):
    words = ["--step", "20", "--episodes", "1", "--out", str(tmp_path / "rows.csv")]
    assert main(["evaluate", str(run.path), *words]) == 0
    assert (tmp_path / "rows.csv").read_text().splitlines()[1].startswith("20,3,0,")
    film = ["--step", "60", "--frames", "2", "--out", str(tmp_path / "a.gif")]
    assert main(["play", str(run.path), *film]) == 0
    assert main(["evaluate", str(run.path), "--step", "21"]) != 0
    assert "keeps no policy of step 21" in capsys.readouterr().err
