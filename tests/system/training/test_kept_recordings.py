"""`collect` removes no recorded step: not after a kill, not without its checkpoints, only by --restart."""

import json
import os
import shutil
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from little import GAME, begin, small, small_words, wait_for
from optimist import envs
from optimist.data import Dataset
from optimist.data import recorder as recorders
from optimist.data.verify import verify
from optimist.errors import RunError
from optimist.training import online
from optimist.training.online import OnlineTraining
from optimist.training.settings import Collection
from optimist.training.storage import checkpoint
from optimist.training.terminal import Interrupted
from patience import PATIENCE

SHORT = Collection(
    steps=240, lanes=4, window=100, warm_up=40, epsilon_decay=100, batch=8, checkpoint_seconds=1e9
)


def collect(out, collection=SHORT, **options):
    return OnlineTraining(small("dqn"), GAME, collection, out=out, **options).run()


def recorded(out) -> int:
    """The steps that the manifest names: those that are synced."""
    file = out / "manifest.json"
    return json.loads(file.read_text())["steps"] if file.exists() else 0


@pytest.fixture
def new_episodes(monkeypatch):
    """An environment that cannot be restored, as most."""
    make = envs.make

    def made(*arguments, **options):
        play = make(*arguments, **options)
        play.resumable = False
        return play

    monkeypatch.setattr(envs, "make", made)


@pytest.fixture
def small_shards(monkeypatch):
    """A shard for every 10 vector steps."""
    monkeypatch.setattr(recorders, "usual_shard_steps", lambda spec, lanes: 10 * lanes)


def test_a_recording_without_checkpoints_is_refused_with_its_steps(tmp_path):
    collect(tmp_path)
    before = Dataset.open(tmp_path).fingerprint
    shutil.rmtree(tmp_path / "agent" / "checkpoints")
    with pytest.raises(RunError, match=r"240 recorded steps.*another --out.*--restart"):
        collect(tmp_path, replace(SHORT, steps=320))
    assert Dataset.open(tmp_path).fingerprint == before
    collect(tmp_path, replace(SHORT, steps=80), restart=True)
    assert recorded(tmp_path) == 80


def stopped_without_a_checkpoint(out, monkeypatch, at: int) -> None:
    """Play up to a step, with whole shards on disk, and die before anything else is saved."""

    class Killed(BaseException):
        pass

    def killed(self, step):
        if step >= at:
            raise Killed
        return go(self, step)

    go = online.Playing.go
    with monkeypatch.context() as patch:
        patch.setattr(online.Playing, "go", killed)
        patch.setattr(recorders.Recorder, "__exit__", lambda self, *_: self._let_go())
        with pytest.raises(Killed):
            collect(out)


def test_steps_beyond_the_checkpoint_are_kept_and_learned_from(
    tmp_path, monkeypatch, small_shards, new_episodes, caplog
):
    monkeypatch.setattr(online, "SHARE_OF_TIME", 1e-12)  # a checkpoint with the first shard and no other
    stopped_without_a_checkpoint(tmp_path, monkeypatch, at=200)
    newest = max((tmp_path / "agent" / "checkpoints").glob("step-*")).name
    assert int(newest.split("-")[1]) == 40
    kept = recorded(tmp_path)
    assert kept == 160  # four of the five shards: the step that fills the fifth was still in memory
    before = Dataset.open(tmp_path)
    state = collect(tmp_path)
    assert "120 steps" in caplog.text and caplog.text.count("checkpoint") == 1
    after = Dataset.open(tmp_path)
    np.testing.assert_array_equal(after.first(kept).timeline.reward[:kept], after.timeline.reward[:kept])
    np.testing.assert_array_equal(after.timeline.frames(np.arange(40)), before.timeline.frames(np.arange(40)))
    assert len(after) == 240 and verify(tmp_path) == []
    assert int(state.step) == (240 - 40) // 4  # every update that is due was made


def test_catching_up_can_be_stopped_and_goes_on(tmp_path, monkeypatch, small_shards, new_episodes):
    monkeypatch.setattr(online, "SHARE_OF_TIME", 1e-12)
    stopped_without_a_checkpoint(tmp_path, monkeypatch, at=200)
    monkeypatch.setattr(online, "UPDATES_AT_ONCE", 7)
    learn, calls = online.Replay.learn, iter(range(100))

    def interrupted(self, *arguments, **options):
        if next(calls) == 1:
            signal.raise_signal(signal.SIGTERM)
        return learn(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(online.Replay, "learn", interrupted)
        with pytest.raises(Interrupted):
            collect(tmp_path)
    training = OnlineTraining(small("dqn"), GAME, SHORT, out=tmp_path)
    like = training.learner.shapes((0,))
    training.folder.release()
    step, state = checkpoint.load_state(tmp_path / "agent" / "checkpoints", like)
    assert (step, int(state.step)) == (160, 14)
    assert int(collect(tmp_path).step) == (240 - 40) // 4


def test_a_checkpoint_comes_with_the_first_shard_and_while_they_are_cheap(
    tmp_path, monkeypatch, small_shards
):
    saved = []
    save = checkpoint.save_state
    monkeypatch.setattr(
        checkpoint, "save_state", lambda folder, step, *more: saved.append(step) or save(folder, step, *more)
    )
    monkeypatch.setattr(online, "SHARE_OF_TIME", 1e9)
    collect(tmp_path / "cheap")
    assert saved == [0, 40, 80, 120, 160, 200, 240]
    assert len(list((tmp_path / "cheap").glob("steps-*.arrow"))) == 6  # and makes no shard smaller
    saved.clear()
    monkeypatch.setattr(online, "SHARE_OF_TIME", 1e-12)
    collect(tmp_path / "dear")
    assert saved == [0, 40, 240]


KILLS = int(os.environ.get("OPTIMIST_KILLS", "5"))  # each takes some ten seconds
SMALL_SHARDS = """
import sys
from optimist.data import recorder
recorder.usual_shard_steps = lambda spec, lanes: 20 * lanes
from optimist.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_no_kill_shortens_a_recording(tmp_path):
    """kill -9 at twelve random moments, with the checkpoints there and with them gone."""
    out, checkpoints, aside = tmp_path / "data", tmp_path / "data/agent/checkpoints", tmp_path / "aside"
    settings = ["--lanes", 4, "--warm-up", 100, "--window", 5000, "--batch", 8, "--update-period", 16]
    words = ["collect", GAME, "--out", out, "--steps", 10**7, *settings, *small_words("dqn")]
    random, before = np.random.default_rng(), 0
    for kill in range(KILLS):
        without = kill % 4 == 3
        if without:
            checkpoints.rename(aside)
        with begin(*words, compiled=tmp_path / "compiled", program=SMALL_SHARDS) as child:
            if without:
                _, complaint = child.communicate(timeout=PATIENCE)
                assert child.returncode == 4
                assert f"{before:,} recorded steps" in complaint and "Traceback" not in complaint
            else:
                wait_for(lambda known=before: recorded(out) > known, child)
                time.sleep(random.uniform(0, 0.5))
                child.kill()
        assert recorded(out) >= before
        before = recorded(out)
        if without:
            aside.rename(checkpoints)
    data = Dataset.open(out)
    np.testing.assert_array_equal(np.sort(data.timeline.time), np.arange(len(data)))
    data.timeline.decoded()
