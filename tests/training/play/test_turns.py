"""Two groups of lanes that play in turns: the same play, the same learning, the same log as one group."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from little import small
from optimist.data import Dataset
from optimist.data.verify import verify
from optimist.envs import atari
from optimist.training import online, services
from optimist.training.online import Collection, OnlineTraining
from optimist.training.play import playing
from optimist.training.storage.run_folder import read_config, read_episodes

pytestmark = pytest.mark.timeout(240)
GAME, SEEDS = "atari/Breakout?max_steps=15", (5, 6)
COLLECTION = Collection(
    steps=240, lanes=3, window=90, warm_up=30, epsilon=0.1, epsilon_decay=60, update_period=2, batch=4
)


def collect(out, monkeypatch, *, in_turns: bool, collection=COLLECTION, agent="dqn"):
    monkeypatch.setattr(online, "in_turns", lambda lanes: in_turns)
    return OnlineTraining(small(agent), GAME, collection, out=out, seeds=SEEDS).run()


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
    """Five of six lanes of two seeds end their episodes at different rows; Bootstrapped-DQN acts by one head
    for a whole episode. Checkpoints and evaluations come while a group is a row ahead."""
    monkeypatch.setattr(services, "SHARE_OF_TIME", 1e9)
    often = replace(COLLECTION, evaluate_every=100, episodes=1, checkpoint_seconds=0)
    folders = [tmp_path / "one", tmp_path / "two"]
    states = [
        collect(out, monkeypatch, in_turns=turns, collection=often, agent=agent)
        for out, turns in zip(folders, (False, True), strict=True)
    ]
    assert_same_runs(*folders, states)
    assert int(states[0].step) == (240 - 30) // 2
    scores = [read_episodes(out / "agent") for out in folders]
    assert scores[0] == scores[1] and scores[0]


def test_one_group_always_plays(tmp_path, monkeypatch):
    """When a group's step is received, the other group plays, except in the last row."""
    both_play, receive, made = [], atari.Atari.receive, []

    def watched(self):
        made.extend([] if self in made else [self])
        others = [play for play in made if play is not self]
        both_play.append(all(play._playing for play in others) if others else None)
        return receive(self)

    monkeypatch.setattr(atari.Atari, "receive", watched)
    collect(tmp_path, monkeypatch, in_turns=True)
    rows = COLLECTION.steps // COLLECTION.lanes
    assert len(both_play) == 2 * rows and len(made) == 2
    assert all(both_play[1:-1]) and not both_play[-1]


def test_killed_in_turns_no_recorded_step_is_lost(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    go = playing.Playing.go

    def until(self, step):
        if step >= 120:
            raise Killed
        return go(self, step)

    monkeypatch.setattr(services, "SHARE_OF_TIME", 1e9)
    with monkeypatch.context() as patch:
        patch.setattr(playing.Playing, "go", until)
        with pytest.raises(Killed):
            collect(tmp_path, monkeypatch, in_turns=True)
    recorded = len(Dataset.open(tmp_path))
    assert recorded == 2 * 117  # the last row was not in the recording yet
    collect(tmp_path, monkeypatch, in_turns=True)
    data = Dataset.open(tmp_path)
    assert len(data) == 2 * 240 and verify(tmp_path) == []
    for lane in np.unique(data.timeline.lane):
        assert set(np.diff(data.timeline.time[data.timeline.lane == lane])) <= {6}
    steps = [json.loads(line)["step"] for line in (tmp_path / "agent" / "metrics.jsonl").open()]
    assert steps == sorted(steps) and steps[-1] == 240
