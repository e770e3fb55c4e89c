"""`optimist.record` writes every step of a Gymnasium loop, with its true successor, whatever happens to the
process."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import optimist
from optimist.data import Dataset, Spec
from optimist.data.lane_recorder import LaneRecorder
from optimist.data.verify import verify
from optimist.errors import DataError, StorageError, UsageError


class Counting(gymnasium.Env):
    """An observation counts the steps of its episode and names the episode: a successor can be recognised."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(3, start=5)

    def __init__(self, length: int = 4, number: int = 0, truncates: bool = False):
        self.length, self.episode, self.count, self.truncates = length, 100 * number, 0, truncates

    def reset(self, *, seed=None, options=None):
        self.episode, self.count = self.episode + 1, 0
        return np.array([self.episode, 0.0]), {}

    def step(self, action):
        self.count += 1
        over = self.count == self.length
        seen = np.array([self.episode, float(self.count)])
        return seen, float(action), over and not self.truncates, over and self.truncates, {}


def vector(mode: AutoresetMode, **options) -> SyncVectorEnv:
    made = [lambda n=n: Counting(length=n + 3, number=n + 1, **options) for n in range(3)]
    return SyncVectorEnv(made, autoreset_mode=mode)


def check_counting(data: Dataset, lengths: set[int]) -> None:
    """Every episode of at least one step runs from 0 on, without a gap, to its true final observation."""
    for episode in data.episodes:
        seen = episode.frames
        assert len(set(seen[:, 0])) == 1  # all of one episode
        assert seen[:, 1].tolist() == list(range(len(episode) + 1))
        assert len(episode) in lengths or episode.cut or episode.truncated
        assert (episode.rewards == episode.actions + 5).all()  # the space's actions start at 5


def logged(folder: Path, words: str, env: gymnasium.Env | None = None) -> Dataset:
    """The log of an environment that is reset ("r") and steps with these actions ("567")."""
    env = optimist.record(env or Counting(), folder)
    for word in words:
        env.reset(seed=0) if word == "r" else env.step(int(word))
    env.close()
    return Dataset.open(folder)


def test_every_step_of_a_loop_is_recorded(tmp_path):
    data = logged(tmp_path / "log", "r5675r6756r75")
    check_counting(data, {4})
    assert data.episodes.lengths.tolist() == [4, 4, 2]
    assert data.episodes.terminal.tolist() == [True, True, False]
    assert data.timeline.action.tolist() == [n % 3 for n in range(10)]
    assert data.spec.actions == 3 and verify(tmp_path / "log") == []


def test_a_policy_of_the_recorded_log_answers_with_the_environments_own_numbers(tmp_path):
    logged(tmp_path / "log", "r5675" * 3)
    run = optimist.train("dqn", tmp_path / "log", steps=1, out=tmp_path / "run", environment="none")
    assert Counting.action_space.contains(run.policy(np.array([1.0, 2.0])))


def test_a_reset_before_the_end_truncates(tmp_path):
    """Of an episode without a step nothing is left."""
    episodes = logged(tmp_path, "rr55r6").episodes
    assert episodes.lengths.tolist() == [2, 1]
    assert episodes.truncated.tolist() == [True, False] and not episodes.terminal.any()
    assert episodes[0].frames[-1].tolist() == [2, 2]


def test_a_reset_truncates_also_what_a_shard_has_just_taken(tmp_path, monkeypatch):
    """The newest step of an episode is not written before it is known how the episode goes on."""
    monkeypatch.setattr("optimist.data.lane_recorder.SHARD_STEPS", 0)  # a shard after every step
    data = logged(tmp_path, "r55r5")
    assert len(data.timeline.source.manifest.shards) > 1
    assert data.episodes.truncated.tolist() == [True, False]
    check_counting(data, {4})


def test_an_environment_may_use_its_arrays_again(tmp_path):
    class Reusing(Counting):
        def step(self, action):
            seen, *rest = super().step(action)
            self.shown[:] = seen
            return self.shown, *rest

        def reset(self, **options):
            self.shown, info = super().reset(**options)
            return self.shown, info

    check_counting(logged(tmp_path, "r5555", Reusing()), {4})


@pytest.mark.parametrize("shard", [3, 10**6])
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_vectors_of_environments_keep_true_successors(mode, shard, tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.data.lane_recorder.SHARD_STEPS", shard)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power fails here
    for truncates in (False, True):
        folder = tmp_path / f"{truncates}"
        env = optimist.record(vector(mode, truncates=truncates), folder)
        env.reset(seed=1)
        steps = 0
        for turn in range(25):
            before = env._resets.copy()
            _, _, terminals, truncations, _ = env.step(np.full(3, 5 + turn % 3))
            steps += int((~before).sum())
            over = terminals | truncations
            if mode == AutoresetMode.DISABLED and over.any():
                env.reset(options={"reset_mask": over})
        env.close()
        data = Dataset.open(folder)
        check_counting(data, {3, 4, 5})
        assert len(data) == steps and len(data.timeline.lanes) == 3
        assert (steps < 75) == (mode == AutoresetMode.NEXT_STEP)
        assert (data.episodes.truncated if truncates else data.episodes.terminal).sum() > 10
        assert verify(folder) == []


def test_reset_of_a_vector_truncates_all(tmp_path):
    env = optimist.record(vector(AutoresetMode.NEXT_STEP), tmp_path)
    env.reset()
    for _ in range(4):  # the first has ended and is reset; the second has just ended
        env.step(np.full(3, 5))
    env.reset()
    env.step(np.full(3, 5))
    env.close()
    data = Dataset.open(tmp_path)
    check_counting(data, {3, 4})
    assert data.episodes.lengths.tolist() == [3, 1, 4, 1, 4, 1]
    assert data.episodes.truncated.tolist() == [False] * 4 + [True, False]


def test_environments_of_one_process_share_a_folder(tmp_path):
    """As in the env functions of a DummyVecEnv, which cannot be wrapped itself."""
    envs = [optimist.record(Counting(number=n), tmp_path) for n in range(3)]
    for env in envs:
        env.reset()
    for turn in range(8):
        for env in envs[: 1 + turn % 3]:
            if env.step(5)[2]:
                env.reset()
    for env in envs:
        env.close()
    check_counting(Dataset.open(tmp_path), {4})
    assert len(Dataset.open(tmp_path)) == 8 + 5 + 2


def test_another_spec_in_the_same_folder_is_refused(tmp_path):
    env = optimist.record(Counting(), tmp_path)
    env.reset()
    env.step(5)
    for refusal, words in ((UsageError, "choose another folder"), (DataError, "holds Spec")):
        with pytest.raises(refusal, match=words):
            optimist.record(gymnasium.make("CartPole-v1"), tmp_path)
        env.close()


def test_a_second_run_appends_lanes_and_times_go_on(tmp_path):
    for _ in range(2):
        env = optimist.record(Counting(), tmp_path)
        env.reset()
        env.step(5)
        env.step(5)
        env.close()
        env.reset()  # used again after close: recorded again
        env.step(5)
        env.close()
    data = Dataset.open(tmp_path)
    assert data.timeline.lanes.tolist() == [0, 1, 2, 3]
    assert data.timeline.time.tolist() == list(range(6)) and verify(tmp_path) == []


def test_what_cannot_be_recorded_is_refused(tmp_path):
    with pytest.raises(UsageError, match="int is not a Gymnasium environment"):
        optimist.record(3, tmp_path / "a")
    env = Counting()
    env.action_space = gymnasium.spaces.MultiBinary(3)
    with pytest.raises(UsageError, match="Counting has actions MultiBinary"):
        optimist.record(env, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_garbage_is_written(tmp_path):
    env = optimist.record(Counting(), tmp_path)
    env.reset()
    env.step(5)
    del env
    gc.collect()
    assert len(Dataset.open(tmp_path)) == 1


def test_steps_stay_in_memory_when_the_disk_refuses(tmp_path, monkeypatch):
    env = optimist.record(Counting(), tmp_path)
    env.reset()
    env.step(5)
    env.step(5)

    def full(*_):
        raise StorageError("cannot write: no space left")

    monkeypatch.setattr("optimist.data.disk.appending.write_shard", full)
    monkeypatch.setattr("optimist.data.lane_recorder.SECONDS", -1)
    with pytest.raises(StorageError):
        env.step(5)
    with pytest.raises(StorageError):
        env.close()
    monkeypatch.undo()
    env.step(5)
    env.close()
    env.close()
    data = Dataset.open(tmp_path)
    check_counting(data, {4})
    assert len(data) == 4


def test_other_spaces_are_encoded_as_gym_does(tmp_path):
    data = logged(tmp_path, "r1", gymnasium.make("FrozenLake-v1"))
    assert data.spec == Spec((16,), "bool", actions=4)
    assert data.provenance["environment"] == "gym/FrozenLake-v1"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (lambda: gymnasium.make("Pendulum-v1"), True),
        (lambda: gymnasium.make("Pendulum-v1", render_mode="rgb_array"), True),
        (lambda: gymnasium.make("Pendulum-v1", g=5.0), False),
        (lambda: gymnasium.make("Pendulum-v1", max_episode_steps=9), False),
        (lambda: gymnasium.wrappers.FrameStackObservation(gymnasium.make("Pendulum-v1"), 2), False),
        (lambda: gymnasium.make_vec("Pendulum-v1", num_envs=2), True),
        (lambda: Counting(), False),
    ],
)
def test_the_environment_is_named_only_if_its_name_makes_the_same_one(changed, named, tmp_path):
    env = optimist.record(changed(), tmp_path)
    env.reset(seed=0)
    env.step(env.action_space.sample() if hasattr(env.action_space, "sample") else 5)
    env.close()
    provenance = Dataset.open(tmp_path).provenance
    assert (provenance.get("environment") == "gym/Pendulum-v1") == named
    assert provenance["recorded"]["id"] in ("Pendulum-v1", "Counting")


def test_actions_beyond_the_space_are_clipped_and_said(tmp_path, caplog):
    env = optimist.record(gymnasium.make("Pendulum-v1"), tmp_path)
    env.reset(seed=0)
    env.step(np.array([3.0], np.float32))
    env.step(np.array([-7.0], np.float32))
    env.close()
    assert Dataset.open(tmp_path).timeline.action.ravel().tolist() == [2.0, -2.0]
    (said,) = caplog.records
    assert said.message.startswith("some actions are outside the action space")


SCRIPT = """
    import os, signal, sys
    import gymnasium, optimist
    from test_recording import Counting
    import optimist.data.lane_recorder as lane_recorder
    lane_recorder.SHARD_STEPS = 50
    env = optimist.record(Counting(length=7), sys.argv[1])
    env.reset()
    for turn in range(1000):
        if env.step(5)[2]:
            env.reset()
        if turn == int(sys.argv[2]):
            {end}
    assert "jax" not in sys.modules
"""


def script(folder: Path, end: str, turn: int) -> subprocess.CompletedProcess:
    text = textwrap.dedent(SCRIPT).replace("{end}", end)
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    words = [sys.executable, "-c", text, str(folder), str(turn)]
    return subprocess.run(words, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)


def test_a_script_that_never_closes_loses_nothing_and_needs_no_jax(tmp_path):
    done = script(tmp_path, "break", 123)
    assert done.returncode == 0, done.stderr
    data = Dataset.open(tmp_path)
    check_counting(data, {7})
    assert len(data) == 124 and verify(tmp_path) == []


def test_a_killed_script_leaves_a_valid_log_that_goes_on(tmp_path):
    done = script(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", 333)
    assert done.returncode == -signal.SIGKILL
    (tmp_path / "steps-000006.arrow.tmp").write_bytes(b"half a sh")  # as if in mid-write
    kept = Dataset.open(tmp_path)
    check_counting(kept, {7})
    assert 334 - 52 <= len(kept) < 334
    assert len(logged(tmp_path, "r5", Counting(length=7))) == len(kept) + 1 and verify(tmp_path) == []


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ((3, 0.0, False, False, np.ones(1)), "the action 3 is not one of"),
        ((-1, 0.0, False, False, np.ones(1)), "the action -1 is not one of"),
        ((1, float("nan"), False, False, np.ones(1)), "the reward is nan"),
        ((1, 0.0, False, False, np.array([np.inf])), "next_observation holds NaN or infinity"),
        ((1, 0.0, False, False, np.ones(2)), "next_observation has shape"),
    ],
)
def test_a_wrong_step_is_refused_and_leaves_no_trace(step, words, tmp_path):
    lane = LaneRecorder(tmp_path, Spec((1,), "float32", actions=3)).lane()
    with pytest.raises(DataError, match="a step before the first reset"):
        lane.add(1, 0.0, True, False, np.ones(1))
    lane.begin(np.zeros(1))
    with pytest.raises(DataError, match=words):
        lane.add(*step)
    lane.add(2, 0.5, True, False, np.ones(1))
    lane.close()
    assert Dataset.open(tmp_path).timeline.action.tolist() == [2]
    with pytest.raises(DataError, match="is closed"):
        lane.begin(np.zeros(1))


def test_a_fork_does_not_write(tmp_path):
    recorder = LaneRecorder(tmp_path, Spec((1,), "float32", actions=2))
    lane = recorder.lane()
    lane.begin(np.zeros(1))
    lane.add(1, 0.0, True, False, np.ones(1))
    recorder._process = -1  # as in a child process
    lane.close()
    assert not list(tmp_path.glob("*.arrow")) and not recorder.closed
    recorder.folder.lock.release()
