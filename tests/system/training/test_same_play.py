"""A collection that was killed comes to the same bits as one left alone, where the game can be restored."""

import random as chance
import signal
from dataclasses import replace

import jax
import numpy as np
import pytest

import optimist
from little import GAME, begin, played, small, small_words, wait_for
from optimist import envs
from optimist.data import Dataset
from optimist.data import recorder as recorders
from optimist.data.sampling import Sampler
from optimist.data.verify import verify
from optimist.envs import _environment, _workers, minatar
from optimist.training import online, services
from optimist.training.beginning import beginning
from optimist.training.online import OnlineTraining
from optimist.training.play import playing
from optimist.training.run import load_run
from optimist.training.settings import Collection
from optimist.training.terminal import Interrupted
from patience import PATIENCE

COLLECTION = Collection(
    steps=600, lanes=2, window=240, warm_up=60, epsilon=0.1, epsilon_decay=200, update_period=2, batch=4
)
GAMES = [*(f"minatar/{game}" for game in ("breakout", "freeway", "seaquest")), "minatar_jax/breakout"]
SEEDS = (5, 6)


class Killed(BaseException):
    pass


@pytest.fixture(autouse=True)
def small_programs_and_shards(monkeypatch):
    monkeypatch.setattr(playing, "ROWS", 16)
    monkeypatch.setattr(recorders, "usual_shard_steps", lambda spec, lanes: 25 * lanes)


def collect(out, game, collection=COLLECTION, seeds=SEEDS, start=None):
    return OnlineTraining(small("dqn"), game, collection, out=out, seeds=seeds, start=start).run()


def killed(out, game, monkeypatch, at: int, collection=COLLECTION, seeds=SEEDS, start=None) -> None:
    """Play up to a step and leave everything as kill -9 does: nothing is flushed, nothing is saved."""
    go = playing.Playing.go

    def until(self, step):
        if step >= at:
            self.settle()
            raise Killed
        return go(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(playing.Playing, "go", until)
        patch.setattr(recorders.Recorder, "__exit__", lambda self, *_: self._let_go())
        with pytest.raises(Killed):
            collect(out, game, collection, seeds, start)


def assert_same(one, other, state, other_state) -> None:
    first, second = Dataset.open(one).timeline, Dataset.open(other).timeline
    for name in ("time", "lane", "action", "reward", "terminal", "truncated"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    np.testing.assert_array_equal(first.decoded(), second.decoded())
    for ours, theirs in zip(jax.tree.leaves(state), jax.tree.leaves(other_state), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert verify(other) == []
    assert_same_minibatches(one, other)


def assert_same_minibatches(one, other) -> None:
    """Agents that learn from either recording draw the same steps."""
    data, more = Dataset.open(one), Dataset.open(other)
    assert data.fingerprint == more.fingerprint
    np.testing.assert_array_equal(Sampler(data).positions(0, 300), Sampler(more).positions(0, 300))


@pytest.mark.parametrize(
    "often",
    [
        pytest.param(1e9, id="many checkpoints", marks=pytest.mark.slow),
        pytest.param(1e-12, id="few checkpoints"),
    ],
)
@pytest.mark.parametrize(
    "game",
    [game if "breakout" in game else pytest.param(game, marks=pytest.mark.slow) for game in GAMES],
)
def test_killed_play_comes_to_the_same_bits(tmp_path, monkeypatch, game, often):
    monkeypatch.setattr(online, "SHARE_OF_TIME", often)
    state = collect(tmp_path / "whole", game)
    for at in sorted(chance.sample(range(30, 590), 3)):
        killed(tmp_path / "killed", game, monkeypatch, at)
    other_state = collect(tmp_path / "killed", game)
    assert_same(tmp_path / "whole", tmp_path / "killed", state, other_state)


@pytest.mark.parametrize("game", [GAME, "minatar_jax/breakout"])
def test_the_recording_does_not_depend_on_when_checkpoints_are_saved(tmp_path, monkeypatch, game):
    """After every turn, after some of them, and at the end only; with a stop in the middle of a shard."""
    monkeypatch.setattr(online, "SHARE_OF_TIME", 0)
    short = replace(COLLECTION, steps=160)
    collect(tmp_path / "never", game, replace(short, checkpoint_seconds=1e9))
    collect(tmp_path / "always", game, replace(short, checkpoint_seconds=0))
    turns = iter(range(10**6))
    monkeypatch.setattr(services.Services, "late", property(lambda self: next(turns) % 7 == 6))
    collect(tmp_path / "sometimes", game, short)
    leave = services.Services.leave_if_asked

    def stopped(self, step):
        self.stop.received = self.stop.received or (signal.SIGTERM if step >= 90 else 0)
        leave(self, step)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(services.Services, "leave_if_asked", stopped)
        collect(tmp_path / "stopped", game, short)
    collect(tmp_path / "stopped", game, short)
    for name in ("always", "sometimes", "stopped"):
        assert_same_minibatches(tmp_path / "never", tmp_path / name)
        assert verify(tmp_path / name) == []


def test_killed_play_that_goes_on_from_a_run_comes_to_the_same_bits(tmp_path, monkeypatch):
    """Half of its minibatches is from the log of that run."""
    played(tmp_path / "log", rows=40)
    learning = {"steps": 4, "batch": 4, "evaluate_every": 4, "environment": ""}
    optimist.train(small("dqn"), tmp_path / "log", seeds=SEEDS, out=tmp_path / "run", **learning)
    asked = (replace(COLLECTION, steps=200, warm_up=0, mix=0.5), SEEDS, beginning(tmp_path / "run"))
    state = collect(tmp_path / "whole", GAME, *asked)
    killed(tmp_path / "killed", GAME, monkeypatch, 120, *asked)
    assert_same(tmp_path / "whole", tmp_path / "killed", state, collect(tmp_path / "killed", GAME, *asked))


def test_lanes_in_processes_are_restored(tmp_path, monkeypatch):
    """Sixteen lanes of a game are shared out to two processes, whose questions are long."""
    monkeypatch.setattr(_workers, "usual_processes", lambda lanes: 2)
    wide = replace(COLLECTION, lanes=32, steps=1600, window=1000, warm_up=500, update_period=16)
    state = collect(tmp_path / "whole", "minatar/asterix", wide, (3,))
    killed(tmp_path / "killed", "minatar/asterix", monkeypatch, 1000, wide, (3,))
    other_state = collect(tmp_path / "killed", "minatar/asterix", wide, (3,))
    assert_same(tmp_path / "whole", tmp_path / "killed", state, other_state)


@pytest.mark.parametrize("game", [f"minatar/{game}" for game in minatar.games()])
def test_a_restored_game_goes_on_as_the_first(game):
    one, other = (envs.make(game, lanes=3, seed=seed) for seed in (1, 2))
    random = np.random.default_rng(0)
    for play in (one, other):
        play.reset()
    for _ in range(300):
        one.step(random.integers(one.spec.actions, size=3))
    other.restore(one.saved())
    for _ in range(400):
        actions = random.integers(one.spec.actions, size=3)
        for ours, theirs in zip(one.step(actions), other.step(actions), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_play_that_comes_out_otherwise_begins_new_episodes_and_loses_no_step(tmp_path, monkeypatch, caplog):
    """As on another device, where an action may be rounded to another one."""
    monkeypatch.setattr(online, "SHARE_OF_TIME", 1e-12)
    game = "minatar/breakout"
    killed(tmp_path, game, monkeypatch, 400)
    before = Dataset.open(tmp_path).timeline
    step = _environment.Lanes.step
    monkeypatch.setattr(_environment.Lanes, "step", lambda self, actions: step(self, 0 * np.asarray(actions)))
    collect(tmp_path, game)
    assert "new episodes" in caplog.text
    after = Dataset.open(tmp_path)
    assert len(after) == 2 * 600 and verify(tmp_path) == []
    kept = after.timeline.time < len(before)
    np.testing.assert_array_equal(after.timeline.reward[kept], before.reward)
    assert after.timeline.lane.max() == 7


@pytest.mark.parametrize("damage", ["flipped", "of another game", "gone"])
def test_a_state_of_play_that_cannot_be_used_is_passed_over(tmp_path, monkeypatch, damage, caplog):
    game = "minatar/breakout"
    killed(tmp_path / "data", game, monkeypatch, 400)
    recorded = len(Dataset.open(tmp_path / "data"))
    folder = tmp_path / "data" / "agent" / "checkpoints"
    newest = max(folder.glob("play-*"))
    if damage == "flipped":
        content = bytearray(newest.read_bytes())
        content[len(content) // 2] ^= 1
        newest.write_bytes(content)
    elif damage == "of another game":
        killed(tmp_path / "other", "minatar/freeway", monkeypatch, 400)
        theirs = max((tmp_path / "other" / "agent" / "checkpoints").glob("play-*"))
        newest.unlink()
        (folder / theirs.name).write_bytes(theirs.read_bytes())
    else:
        newest.unlink()
    collect(tmp_path / "data", game)
    data = Dataset.open(tmp_path / "data")
    assert len(data) == 2 * 600 > recorded and data.timeline.lane.max() == 7
    assert verify(tmp_path / "data") == []


def test_only_the_plays_of_kept_checkpoints_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(online, "SHARE_OF_TIME", 1e9)
    killed(tmp_path, "minatar/breakout", monkeypatch, 500)
    folder = tmp_path / "agent" / "checkpoints"
    steps, plays = (
        {path.name.split("-")[1] for path in folder.glob(f"{kind}-*")} for kind in ("step", "play")
    )
    assert len(steps) == 2 and plays == steps
    assert load_run(tmp_path / "agent").step == max(map(int, steps))


@pytest.mark.slow  # the quick form, in one process, is test_killed_play_comes_to_the_same_bits
def test_kill_9_of_the_command(tmp_path):
    out, whole = tmp_path / "killed", tmp_path / "whole"
    settings = ["--lanes", 4, "--warm-up", 200, "--window", 2000, "--batch", 8, "--checkpoint-seconds", 0.3]
    words = ["minatar_jax/breakout", "--steps", 60_000, *settings, *small_words("dqn"), "--out"]
    checkpoints = out / "agent" / "checkpoints"

    def known() -> int:
        return max((int(path.name.split("-")[1]) for path in checkpoints.glob("step-*")), default=0)

    for beyond in (0, 5000):
        with begin("collect", *words, out, compiled=tmp_path / "compiled") as child:
            wait_for(lambda past=beyond: known() > past, child)
            child.kill()
        assert child.returncode == -signal.SIGKILL
    for folder in (out, whole):
        with begin("collect", *words, folder, compiled=tmp_path / "compiled") as child:
            _, complaint = child.communicate(timeout=PATIENCE)
            assert child.returncode == 0, complaint
    one, other = load_run(whole / "agent"), load_run(out / "agent")
    assert_same(whole, out, one.params, other.params)
