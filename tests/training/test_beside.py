"""A run that evaluates beside training writes what a run writes that waits: undisturbed, stopped, killed,
when the child process fails, and when a seed diverges."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import gated_game
import jax
import pytest
from fuse import Fuse

from little import begin, interrupted, lines, outcome, played, small, small_words, wait_for
from optimist.agents import described
from optimist.cli.main import main
from optimist.data import Dataset
from optimist.errors import DivergedError, UsageError
from optimist.training.beside import WAYS
from optimist.training.evaluator import device
from optimist.training.evaluator_child import Child
from optimist.training.interrupt import Interrupted
from optimist.training.learner import Learner
from optimist.training.offline import OfflineTraining, Training
from optimist.training.resolve import with_values
from optimist.training.storage import checkpoint
from optimist.training.storage.alarms import read_alarms
from optimist.training.storage.run_folder import read_config
from patience import PATIENCE

GAME = f"{Path(__file__).with_name('gated_game.py')}:Gated/walk"
SHORT = Training(steps=50, evaluate_every=20, episodes=2, batch=8, checkpoint_seconds=0)
WAITS = replace(SHORT, checkpoint_seconds=1000)  # nothing is saved before the signal
# Long enough between two evaluations that a signal comes there.
AHEAD = replace(SHORT, steps=6000, evaluate_every=3000, batch=64)
OVER = threading.Event()  # the block of `meanwhile` has ended


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Dataset:
    return Dataset.open(played(tmp_path_factory.mktemp("log") / "data", game=GAME))


@pytest.fixture
def gate(tmp_path, monkeypatch) -> Path:
    """The file that keeps evaluations from going on, closed."""
    path = tmp_path / "gate"
    path.touch()
    monkeypatch.setenv("GATE", str(path))
    return path


def train(
    log: Dataset, out: Path, training: Training, agent=None, seeds=(3, 5), environment=GAME, **changes
) -> Path:
    training, agent = replace(training, **changes), agent or small("dqn")
    OfflineTraining(agent, log, training, out=out, seeds=seeds, environment=environment).run()
    return out


def newest(run: Path) -> Path | None:
    return max((run / "checkpoints").glob("step-*"), default=None)


def is_ahead(run: Path) -> Callable[[], bool]:
    """Has training gone on since its first evaluation began? It writes the checkpoint of that one again."""
    seen = set()

    def look() -> bool:
        with contextlib.suppress(FileNotFoundError):
            if (run / "policies").exists() and (path := newest(run)):
                seen.add(path.stat().st_mtime_ns)
        return len(seen) > 2

    return look


def player(gate: Path) -> int:
    """The process that plays, once it has come to the gate."""
    path, deadline = gate.with_name("playing"), time.monotonic() + PATIENCE
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline and not OVER.is_set(), "nobody plays"
        time.sleep(0.01)
    return int(path.read_text())


@contextlib.contextmanager
def meanwhile(do: Callable[[], object]) -> Iterator[None]:
    """Do it in a thread beside the block. A thread that waits for a player ends with the block."""
    thread = threading.Thread(target=do)
    thread.start()
    try:
        yield
    finally:
        OVER.set()
        thread.join()
        OVER.clear()


def ends(pid: int) -> bool:
    """Does the process end?"""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def remarks(caplog) -> list[str]:
    """The lines that say why a run waits for its evaluations."""
    return [line for line in caplog.messages if line.startswith("no evaluation beside training")]


def test_the_files_are_those_of_a_run_that_waits(log, tmp_path, caplog):
    agent = with_values(gated_game.OwnDqn(), {"network.torso": "mlp", "target_period": 7}, "dqn")
    ways = [train(log, tmp_path / way, SHORT, agent, evaluation=way) for way in WAYS]
    waited, beside = map(outcome, ways)
    assert remarks(caplog) == []  # the child played
    assert beside == waited
    assert len(beside["episodes.csv"].splitlines()) == 1 + 3 * 2 * 2
    assert read_config(ways[0]) == read_config(ways[1])  # so each may continue the other


class Told:
    """A logger that keeps the order of what it is told."""

    rows: "list[tuple]" = []

    def __init__(self, folder, seeds, step):
        """Nothing to open."""

    def add(self, step, values, seed):
        Told.rows.append((step, seed, sorted(values)))

    def close(self):
        """Nothing is open."""


@pytest.mark.slow
def test_training_goes_on_while_the_child_plays_and_loggers_are_told_in_order(
    log, tmp_path, gate, monkeypatch
):
    beside, seen, told = tmp_path / "beside", [], []

    def open_when_ahead():
        ahead, deadline = is_ahead(beside), time.monotonic() + PATIENCE
        while not ahead() and time.monotonic() < deadline:
            time.sleep(0.001)
        seen.extend([player(gate), lines(beside / "metrics.jsonl"), (beside / "episodes.csv").exists()])
        gate.unlink()

    for way in ("beside", "wait"):
        monkeypatch.setattr(Told, "rows", told_now := [])
        with meanwhile(open_when_ahead) if gate.exists() else contextlib.nullcontext():
            train(log, tmp_path / way, AHEAD, evaluation=way, loggers=("jsonl", Told))
        told.append(told_now)
    # While another process played, rows after the evaluation's step were held back.
    assert seen[0] != os.getpid() and seen[1:] == [2 * 3000 // 250, False]
    assert told[0] == told[1]
    assert outcome(beside) == outcome(tmp_path / "wait")


def words(log: Dataset, training: Training, **changes) -> list[str]:
    """The command that trains as `train` does."""
    names = ("steps", "evaluate_every", "episodes", "batch", "checkpoint_seconds", "evaluation")
    training = replace(training, **changes)
    settings = [(f"--{name.replace('_', '-')}", str(getattr(training, name))) for name in names]
    plain = [word for pair in settings for word in pair]
    return [
        "train",
        "dqn",
        str(log.path),
        "--environment",
        GAME,
        "--seeds",
        "3,5",
        *plain,
        *small_words("dqn"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("training", [WAITS, AHEAD], ids=["waits for the one before", "learns"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_an_evaluation_saves_where_that_one_began(log, tmp_path, gate, training, number):
    out, line = tmp_path / "stopped", words(log, training, evaluation="beside")
    with begin(*line, "--out", out) as child:
        wait_for(is_ahead(out) if training is AHEAD else gate.with_name("playing").exists, child)
        playing = player(gate)
        if number == signal.SIGINT:  # in a terminal Ctrl-C is for all processes
            os.kill(playing, number)
            time.sleep(0.5)
        complaint = interrupted(child, number)
    first = training.evaluate_every
    assert child.returncode == 128 + number
    assert complaint.startswith(f"optimist: stopped at gradient step {first:,} of ")
    assert complaint.count("\n") == 1
    assert checkpoint.step_of(newest(out)) == first and not (out / "episodes.csv").exists()
    assert ends(playing)
    gate.unlink()
    assert main([*line, "--out", str(out)]) == 0
    assert main([*words(log, training), "--out", str(tmp_path / "straight")]) == 0
    assert outcome(out) == outcome(tmp_path / "straight")


@pytest.mark.slow
def test_a_killed_run_takes_the_child_along_and_continues_to_the_same_bits(log, tmp_path, gate):
    out, line = tmp_path / "killed", words(log, AHEAD, evaluation="beside")
    with begin(*line, "--out", out) as child:
        wait_for(is_ahead(out), child)
        playing = player(gate)
        child.kill()
    assert ends(playing)
    assert checkpoint.step_of(newest(out)) <= AHEAD.evaluate_every
    gate.unlink()
    assert main([*line, "--out", str(out)]) == 0
    assert main([*words(log, AHEAD), "--out", str(tmp_path / "straight")]) == 0
    assert outcome(out) == outcome(tmp_path / "straight")


@pytest.mark.slow
def test_the_last_evaluation_is_owed_by_a_run_that_was_stopped_during_it(log, tmp_path, gate):
    out, training = tmp_path / "stopped", replace(SHORT, steps=20, evaluation="beside")

    def stop():
        player(gate)
        os.kill(os.getpid(), signal.SIGTERM)

    with meanwhile(stop), pytest.raises(Interrupted, match="gradient step 20 of 20"):
        train(log, out, training)
    assert not (out / "DONE").exists() and not (out / "episodes.csv").exists()
    gate.unlink()
    train(log, out, training)
    assert outcome(out) == outcome(train(log, tmp_path / "straight", training, evaluation="wait"))


@pytest.mark.slow
def test_if_the_child_is_killed_the_evaluation_is_done_here(log, tmp_path, gate, caplog):
    def kill():
        os.kill(player(gate), signal.SIGKILL)
        gate.unlink()

    with meanwhile(kill):
        out = train(log, tmp_path / "beside", SHORT, evaluation="beside")
    (line,) = remarks(caplog)
    assert line == (
        "no evaluation beside training (its process was ended by SIGKILL, perhaps because memory is short): "
        "training waits for each from now on"
    )
    assert outcome(out) == outcome(train(log, tmp_path / "wait", SHORT))


def test_a_child_that_cannot_be_started_costs_a_line(log, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    out = train(log, tmp_path / "beside", SHORT, evaluation="beside")
    (line,) = remarks(caplog)
    assert "/nowhere/python" in line
    assert outcome(out) == outcome(train(log, tmp_path / "wait", SHORT))


@pytest.mark.slow
def test_an_environment_that_only_this_process_knows_is_played_here(log, tmp_path, caplog, monkeypatch):
    only_here = ModuleType("only_here")
    only_here.Gated = gated_game.Gated
    monkeypatch.setitem(sys.modules, "only_here", only_here)
    own = Dataset.open(played(tmp_path / "log", game="only_here:Gated/walk"))
    more = {"environment": "only_here:Gated/walk"}
    out = train(own, tmp_path / "beside", SHORT, evaluation="beside", **more)
    (line,) = remarks(caplog)
    assert 'there is no module "only_here"' in line
    assert outcome(out) == outcome(train(own, tmp_path / "wait", SHORT, **more))


def test_a_child_on_another_device_does_not_play(log):
    learner = Learner(small("dqn"), log.spec)
    config = {"agent": described(learner.agent), "spec": log.spec.as_json(), "environment": GAME}
    how = {"seeds": [3], "episodes": 1, "steps": None, "epsilon": 0.0}
    content = b"".join(checkpoint.content(learner.init((3,)).params))
    played_here = Child(config, how, settings={}, device=device()).answer(20, content)
    assert [row[:3] for row in played_here["episodes"]] == [(20, 3, 0)]
    refused = Child(config, how, settings={}, device="another chip").answer(20, content)
    assert refused == {"problem": f"it computes on {device()} and not on another chip"}


@pytest.mark.slow
def test_the_child_draws_random_numbers_as_this_process_does(log, tmp_path):
    usual = train(log, tmp_path / "usual", SHORT, epsilon=1.0)
    jax.config.update("jax_threefry_partitionable", False)
    try:
        ways = [train(log, tmp_path / way, SHORT, epsilon=1.0, evaluation=way) for way in WAYS]
    finally:
        jax.config.update("jax_threefry_partitionable", True)
    files = [(out / "episodes.csv").read_text() for out in (*ways, usual)]
    assert files[0] == files[1] != files[2]


# While an evaluation is pending a seed diverges.


WILD = small("dqn", **{"target_period": 1, "optimizer.learning_rate": 3.0})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "changes"),
    [
        pytest.param(WILD, {"steps": 3000, "evaluate_every": 1500, "on_divergence": "stop"}, id="too large"),
        pytest.param(Fuse(burns_after=60.0), {"steps": 80, "evaluate_every": 40}, id="not finite"),
    ],
)
def test_a_run_that_diverges_ends_after_its_evaluation(log, tmp_path, gate, agent, changes):
    def open_late():
        try:
            player(gate)
            time.sleep(0.5)
        finally:
            gate.unlink()  # or the run that waits would wait here

    found = {}
    for way in ("beside", "wait"):
        out = tmp_path / way
        with (
            meanwhile(open_late) if way == "beside" else contextlib.nullcontext(),
            pytest.raises(DivergedError) as caught,
        ):
            train(log, out, SHORT, agent, evaluation=way, **changes)
        kept = [path.name for path in (out / "diverged").glob("*")]
        found[way] = str(caught.value), outcome(out), read_alarms(out), kept
    assert found["beside"] == found["wait"]
    assert found["wait"][1]["episodes.csv"]


@pytest.mark.slow
def test_an_alarm_after_a_pending_evaluation_is_raised_again(log, tmp_path, gate, caplog):
    agent, out, straight = WILD, tmp_path / "stopped", tmp_path / "straight"
    training = replace(SHORT, steps=3000, evaluate_every=1500, checkpoint_seconds=1000)

    def stop_after_the_alarm():
        deadline = time.monotonic() + PATIENCE
        while not any("diverges" in line for line in caplog.messages) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    with meanwhile(stop_after_the_alarm), pytest.raises(Interrupted, match="gradient step 1,500 of 3,000"):
        train(log, out, training, agent, evaluation="beside")
    gate.unlink()
    assert read_alarms(out) == {}
    for path in (out, straight):
        train(log, path, training, agent)
    assert read_alarms(out) == read_alarms(straight) != {}
    assert outcome(out) == outcome(straight)


# Where nothing is gained, and what the setting may be.


def test_games_on_the_device_and_runs_without_a_game_start_no_child(log, tmp_path):
    data = Dataset.open(played(tmp_path / "log", game="minatar_jax/breakout", rows=20))
    training, starts = replace(SHORT, evaluation="beside"), []
    for number, (own, game) in enumerate(((log, GAME), (log, None), (data, "minatar_jax/breakout"))):
        out = tmp_path / str(number)
        run = OfflineTraining(small("dqn"), own, training, out=out, environment=game)
        starts.append(run._evaluates_beside())
        run.folder.release()
    assert starts == [True, False, False]


def test_another_word_is_refused():
    with pytest.raises(UsageError, match='no evaluation "besides": did you mean "beside"'):
        Training(evaluation="besides")
