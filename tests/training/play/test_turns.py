"""Two groups of lanes that play in turns: the same play, the same learning, the same log as one group."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from little import small
from optimist.data import Dataset
from optimist.data.verify import verify
from optimist.training import online, services
from optimist.training.online import Collection, OnlineTraining
from optimist.training.play import playing
from optimist.training.storage.run_folder import read_config, read_episodes
from playing_beside import InThread

GAME, SEEDS = "playing_beside:Family/breakout", (5, 6)
COLLECTION = Collection(
    steps=120, lanes=3, window=90, warm_up=30, epsilon=0.1, epsilon_decay=60, update_period=2, batch=4
)


def collect(out, monkeypatch, *, in_turns: bool, collection=COLLECTION, agent="dqn", game=GAME):
    monkeypatch.setattr(online, "in_turns", lambda lanes: in_turns)
    return OnlineTraining(small(agent), game, collection, out=out, seeds=SEEDS).run()


def assert_same_runs(one, other, states) -> None:
    first, second = Dataset.open(one).timeline, Dataset.open(other).timeline
    for name in ("time", "lane", "action", "reward", "terminal", "truncated"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    np.testing.assert_array_equal(first.decoded(), second.decoded())
    for ours, theirs in zip(*map(jax.tree.leaves, states), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert verify(one) == verify(other) == []
    assert read_config(one / "agent") == read_config(other / "agent")


@pytest.mark.parametrize("agent", ["dqn", pytest.param("bootstrapped_dqn", marks=pytest.mark.slow)])
def test_two_groups_come_to_the_same_bits(tmp_path, monkeypatch, agent):
    """Each seed has lanes in both groups. Bootstrapped-DQN acts by one head for a whole episode. Checkpoints
    and evaluations come while a group is a row ahead."""
    often = replace(COLLECTION, steps=60, evaluate_every=25, episodes=1, checkpoint_seconds=0)
    folders = [tmp_path / "one", tmp_path / "two"]
    states = [
        collect(out, monkeypatch, in_turns=turns, collection=often, agent=agent)
        for out, turns in zip(folders, (False, True), strict=True)
    ]
    assert_same_runs(*folders, states)
    assert int(states[0].step) == (60 - 30) // 2
    assert len(np.unique(Dataset.open(folders[0]).timeline.action)) == 3  # not all alike
    scores = [read_episodes(out / "agent") for out in folders]
    assert scores[0] == scores[1] and scores[0]


def test_one_group_always_plays(tmp_path, monkeypatch):
    """Whenever a group's step is received, the other group plays, until the last row."""
    others_play, receive = list[bool](), InThread.receive

    def watched(self):
        first, second = training.play.halves
        others_play.append((second if self is first else first).playing is not None)
        return receive(self)

    monkeypatch.setattr(InThread, "receive", watched)
    monkeypatch.setattr(online, "in_turns", lambda lanes: True)
    training = OnlineTraining(small("dqn"), GAME, COLLECTION, out=tmp_path, seeds=SEEDS)
    training.run()
    assert others_play == [True] * (2 * 40 - 1) + [False]


def test_killed_in_turns_no_recorded_step_is_lost(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    go = playing.Playing.go

    def until(self, step):
        if step >= 60:
            raise Killed
        return go(self, step)

    monkeypatch.setattr(services, "SHARE_OF_TIME", 1e9)
    with monkeypatch.context() as patch:
        patch.setattr(playing.Playing, "go", until)
        with pytest.raises(Killed):
            collect(tmp_path, monkeypatch, in_turns=True)
    recorded = len(Dataset.open(tmp_path))
    assert recorded == 2 * 57  # 20 rows were played; the last one was not in the recording yet
    collect(tmp_path, monkeypatch, in_turns=True)
    data = Dataset.open(tmp_path)
    assert len(data) == 2 * 120 and verify(tmp_path) == []
    for lane in np.unique(data.timeline.lane):
        assert set(np.diff(data.timeline.time[data.timeline.lane == lane])) <= {6}
    lines = (tmp_path / "agent" / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in lines]
    assert steps == sorted(steps) and steps[-1] == 120


@pytest.mark.slow  # the network for its images is large
def test_atari_in_two_groups_comes_to_the_same_bits(tmp_path, monkeypatch):
    short = replace(COLLECTION, steps=90, warm_up=30, update_period=15)
    folders = [tmp_path / "one", tmp_path / "two"]
    states = [
        collect(out, monkeypatch, in_turns=turns, collection=short, game="atari/Breakout?max_steps=12")
        for out, turns in zip(folders, (False, True), strict=True)
    ]
    assert_same_runs(*folders, states)
