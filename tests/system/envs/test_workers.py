"""Lanes divided among processes play as in one process, and no process hangs or outlives its parent."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from little import any_action
from optimist import envs
from optimist.envs import _workers
from optimist.errors import RunError, UsageError
from patience import PATIENCE

LANES = 7


@pytest.fixture(autouse=True)
def own_workers():
    """Each test starts its own workers."""
    _workers._end_all()
    yield
    gc.collect()
    _workers._end_all()


def random_steps(play, count: int = 30) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    arrays = [play.reset()]
    for _ in range(count):
        arrays += play.step(any_action(play.spec, play.lanes, random))[:5]
    return arrays


def members(play) -> list[int]:
    return [member.pid for member in play._workers._members]


def gone(pid: int) -> bool:
    """Whether a process ends."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with contextlib.suppress(FileNotFoundError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            # It ended, but its parent has not waited for it yet, or cannot before its last thread ends.
            if words[0] == "Z" and len(os.listdir(f"/proc/{pid}/task")) < 2:
                return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(("name", "counts"), [("minatar/breakout", (1, 2, 3, 99)), ("mujoco/Hopper", (1, 2))])
def test_every_array_is_what_one_process_gives(name, counts):
    made = [envs.make(name, lanes=LANES, seed=5, processes=count) for count in counts]
    alone, *shared = [random_steps(play) for play in made]
    for arrays in shared:
        for one, other in zip(alone, arrays, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    assert made[0].versions() == made[1].versions() and made[0].spec == made[1].spec
    assert made[0].name == made[1].name
    if name.startswith("minatar/"):  # MuJoCo may lack a display
        np.testing.assert_array_equal(made[0].render(), made[-1].render())
    assert len(members(made[-1])) == min(LANES, counts[-1])


def test_what_is_refused_alone_is_refused_by_a_team():
    for name, options in (("minatar/brekout", {}), ("minatar/breakout", {"max_steps": 0})):
        told = []
        for processes in (1, 2):
            with pytest.raises(UsageError) as caught:
                envs.make(name, lanes=2, processes=processes, **options)
            told.append(str(caught.value))
        assert told[0] == told[1]
    play = envs.make("minatar/breakout", lanes=2, processes=2)
    with pytest.raises(UsageError, match="call reset"):
        play.step([0, 0])
    play.reset()
    with pytest.raises(UsageError, match="not one of 0 to 2"):
        play.step([0, 3])


NOISY = """
from optimist.envs import minatar

class Noisy:
    ON_ONE_CORE = True

    @staticmethod
    def make(game, *, seeds):
        print("a simulator that greets")
        return minatar.make(game, seeds=seeds)
"""


def test_what_a_simulator_prints_is_no_answer(tmp_path):
    (tmp_path / "noisy.py").write_text(NOISY)
    play = envs.make(f"{tmp_path}/noisy.py:Noisy/breakout", lanes=2, processes=2)
    assert play.reset().shape == (2, 10, 10, 4)


@pytest.mark.parametrize("name", ["atari/Pong", "gym/CartPole-v1"])
def test_families_that_do_without_a_team_say_so(name):
    with pytest.raises(UsageError, match=f"{name} cannot be divided among processes"):
        envs.make(name, lanes=4, processes=2)


def test_a_team_stays_for_the_next_environment():
    first = envs.make("minatar/breakout", lanes=4, processes=2)
    team = members(first)
    first.close()
    second = envs.make("minatar/seaquest", lanes=8, seed=3, processes=2)
    assert members(second) == team
    again = envs.make("minatar/seaquest", lanes=8, seed=3)
    for one, other in zip(random_steps(again), random_steps(second), strict=True):
        np.testing.assert_array_equal(one, other)
    third = envs.make("minatar/breakout", lanes=4, processes=2)  # while the second still plays
    assert not set(members(third)) & set(team)
    del third, second
    gc.collect()
    assert len(_workers._idle) == 2  # also those that were never closed


def test_a_killed_member_is_told_of_and_replaced():
    play = envs.make("minatar/breakout", lanes=4, processes=2)
    play.reset()
    dead, other = members(play)
    os.kill(dead, signal.SIGKILL)
    with pytest.raises(RunError, match="ended with code -9"):
        play.step(np.zeros(4, int))
    assert gone(other)
    play.close()
    envs.make("minatar/breakout", lanes=4, processes=2).reset()


def test_a_member_that_dies_while_idle_is_replaced():
    play = envs.make("minatar/breakout", lanes=4, processes=2)
    dead, _ = members(play)
    play.close()
    os.kill(dead, signal.SIGKILL)
    assert gone(dead)
    play = envs.make("minatar/breakout", lanes=4, processes=2)
    assert play.reset().shape == (4, 10, 10, 4) and dead not in members(play)


def test_a_turn_that_was_broken_off_leaves_no_answer_for_the_next():
    play = envs.make("minatar/breakout", lanes=4, processes=2)
    play.reset()
    team = members(play)

    class Impatient:
        def poll(self):
            raise KeyboardInterrupt

    play._workers._signs = Impatient()
    with pytest.raises(KeyboardInterrupt):
        play.step(np.zeros(4, int))
    play.close()
    assert all(map(gone, team))


def test_members_leave_with_the_process_they_play_for():
    script = (
        "import time; from optimist import envs\n"
        "play = envs.make('minatar/breakout', lanes=4, processes=2); play.reset()\n"
        "print(*[member.pid for member in play._workers._members], flush=True); time.sleep(100)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    team = [int(word) for word in process.stdout.readline().split()]
    assert len(team) == 2
    process.kill()
    process.communicate()
    assert all(map(gone, team))


def test_processes_by_lanes_and_cores(monkeypatch):
    for cores, lanes, expected in (
        (2, 16, 2),
        (2, 15, 1),
        (16, 120, 14),
        (16, 50, 6),
        (16, 8, 1),
        (1, 99, 1),
    ):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert _workers.usual_processes(lanes) == expected
