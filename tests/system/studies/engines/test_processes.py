"""Processes that we start run no module of the current folder, and end with whoever started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import optimist
from made_study import study_words
from optimist import plugins
from optimist.envs import _processes
from optimist.studies.job import Job
from patience import PATIENCE

MOMENTS = int(os.environ.get("OPTIMIST_MOMENTS", 8))  # at which an engine is killed; a campaign takes 200
SOURCE = str(Path(optimist.__file__).parents[1])
HOSTILE = (
    "base64",
    "json",
    "ray",
    "pickle",
    "random",
    "runpy",
    "resource",
    "multiprocessing",
    "numpy",
    "jax",
)
SHARED_LANES = """
from optimist import envs
play = envs.make("minatar/breakout", lanes=4, processes=2)
play.reset()
print(play.lanes)
"""


@pytest.fixture
def console_script(tmp_path):
    """As pip installs it: Python searches its folder, not the current one."""
    path = tmp_path / "bin" / "optimist"
    path.parent.mkdir()
    path.write_text(
        "import sys\nfrom optimist.cli.main import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    )
    return str(path)


@pytest.fixture
def hostile(tmp_path):
    """A folder whose modules leave a mark when they are run."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'RAN')!r}, 'a').write({name!r} + '\\n')\n")
    return folder


def run_there(folder: Path, *words: str) -> str:
    quick = {"JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    variables = {**os.environ, "PYTHONPATH": SOURCE, **quick}
    found = subprocess.run(
        [sys.executable, *words], cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.returncode == 0, found.stderr
    assert not (folder / "RAN").exists(), (folder / "RAN").read_text()
    return found.stdout


@pytest.mark.slow
def test_the_workers_of_a_study_run_nothing_of_the_current_folder(hostile, console_script, tmp_path):
    words = [console_script, *study_words(tmp_path, tmp_path / "out", "--workers", "2")]
    assert "all 4 runs are done in" in run_there(hostile, *words)


def test_shared_lanes_run_nothing_of_the_current_folder(hostile):
    assert run_there(hostile, "-P", "-c", SHARED_LANES) == "4\n"


FROM_HERE = """
import os, sys
from multiprocessing import get_context
from optimist.envs._processes import isolated, serve
from optimist.envs._workers import Workers
os.chdir(sys.argv[1])
sys.path.insert(0, {first!r})  # as `python -m` and `python -c` do
worker = get_context("spawn").Process(target=serve, args=(os.getpid(), "math", "sqrt", 4))
with isolated():
    worker.start()
del sys.path[0]  # this process itself is not what is tested
worker.join()
assert worker.exitcode == 0
sys.path.insert(0, {first!r})
Workers(2).end()
"""


@pytest.mark.parametrize("first", ["", "."])
def test_nor_do_they_where_this_process_itself_searches_it(hostile, tmp_path, first):
    run_there(tmp_path, "-P", "-c", FROM_HERE.format(first=first), str(hostile))
    assert not (hostile / "RAN").exists(), (hostile / "RAN").read_text()


def test_an_attempt_at_a_cluster_runs_nothing_of_the_current_folder(hostile):
    script = "from optimist.studies.engines import ray\n"
    script += "ray.ATTEMPT = 'import json, base64, pickle'\nray.check_cluster('a:1')"
    run_there(hostile, "-P", "-c", script)


@pytest.mark.parametrize(
    ("named", "script", "searched"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_the_current_folder_is_searched_if_its_user_named_it(tmp_path, monkeypatch, named, script, searched):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), SOURCE])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, *([str(tmp_path)] if named else [])]))
    monkeypatch.setattr(plugins, "_script_folder", lambda: str(tmp_path) if script else SOURCE)
    assert plugins.search_path() == ([str(tmp_path)] * 2 if searched else []) + [SOURCE]


def test_a_folder_that_is_gone_is_not_searched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    monkeypatch.setattr(sys, "path", ["", SOURCE])
    assert plugins.search_path() == [SOURCE]


def test_what_was_changed_for_a_start_is_put_back(monkeypatch):
    for variable in (None, "0"):
        if variable:
            monkeypatch.setenv(_processes.VARIABLE, variable)
        path = sys.path
        with _processes.isolated():
            assert os.environ[_processes.VARIABLE] == "1"
        assert sys.path is path and os.environ.get(_processes.VARIABLE) == variable


# Forks an engine for every line it is told, as importing all of this anew takes seconds.
NURSERY = """
import os, sys
from pathlib import Path
import optimist.envs._workers, optimist.envs.minatar
from optimist import envs
from optimist.studies.job import Job
from optimist.studies.engines.local import LocalPool

for line in sys.stdin:
    engine = os.fork()
    if not engine:
        kind, folder, job = line.rstrip("\\n").split("\\t")
        if kind == "workers":
            pool = LocalPool(Path(folder), 1)
            pool.start([Job.from_json(job)])
            while True:
                pool.wait()
        play = envs.make("minatar/breakout", lanes=4, processes=2)
        play.reset()
        while True:
            play.step([0, 0, 0, 0])
    print(engine, flush=True)
    os.waitpid(engine, 0)
"""


@pytest.fixture(scope="module")
def nursery():
    variables = {**os.environ, "PYTHONPATH": SOURCE, "JAX_PLATFORMS": "cpu"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, "-P", "-c", NURSERY], env=variables, **pipes) as process:
        yield process
        process.stdin.close()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def processor_seconds(pid: int) -> float:
    """What a process has used so far; infinite for one that has ended."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except FileNotFoundError:
        return np.inf
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def orphans(nursery, line: str, delay: float) -> list[int]:
    """Who is still there after an engine was killed, so long after it started its first child. Each child has
    5 s of processor time to leave; on a busy machine, as much as the nursery took to get going. An orphan
    that works exceeds it."""
    print(line, file=nursery.stdin, flush=True)
    engine, deadline = int(nursery.stdout.readline()), time.monotonic() + PATIENCE
    while not children(engine):
        assert time.monotonic() < deadline, "it never started anybody"
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(engine, signal.SIGSTOP)  # so that it starts nobody between our look and the kill
    used = {pid: processor_seconds(pid) for pid in children(engine)}
    os.kill(engine, signal.SIGKILL)
    allowed, deadline = max(5, processor_seconds(nursery.pid)), time.monotonic() + PATIENCE
    while left := [pid for pid in used if state(pid) != "Z"]:
        if time.monotonic() > deadline or any(processor_seconds(pid) > used[pid] + allowed for pid in left):
            return left
        time.sleep(0.02)
    return []


def delays() -> list[float]:
    """Half of them while a child is being started, the others up to when it works."""
    random = np.random.default_rng(0)
    return [random.uniform(0, 0.3 if number % 2 else 2) for number in range(MOMENTS)]


@pytest.mark.parametrize("kind", ["workers", pytest.param("lanes", marks=pytest.mark.slow)])
def test_nobody_outlives_an_engine_that_is_killed_at_any_moment(nursery, tmp_path, kind):
    settings = {"steps": 10_000_000, "lanes": 4, "warm_up": 40, "batch": 8}
    common = {"agent": "dqn", "preset": None, "recipe": "small", "options": {"network": "mlp"}}
    for number, delay in enumerate(delays()):
        job = Job(name="log", environment="minatar/breakout", seeds=(0,), settings=settings, **common)
        line = "\t".join((kind, str(tmp_path / str(number)), job.as_json()))
        assert not orphans(nursery, line, delay), f"killed after {delay:.3f} s"


@pytest.mark.parametrize("there", [True, False])
def test_a_parent_that_was_gone_before_anybody_asked_is_noticed(there):
    script = "import os, sys, time; from optimist.envs._processes import leave_with\n"
    script += "leave_with(int(sys.argv[1])); print('stays', flush=True)"
    pid = os.getpid() if there else os.getppid()
    words = [sys.executable, "-c", script, str(pid)]
    variables = {**os.environ, "PYTHONPATH": SOURCE}
    found = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=PATIENCE)
    expected = (0, "stays\n") if there else (-signal.SIGTERM, "")
    assert (found.returncode, found.stdout) == expected


WATCHED = """
import os, signal, time
from optimist.envs import _processes
_processes.PATIENCE = 0.01
{before}
parent = os.getpid()
if not os.fork():
    _processes.leave_with(parent)
    print(os.getpid(), flush=True)
time.sleep({patience})
"""


def ends_with_its_parent(before: str) -> bool:
    """Whether a child ends soon after its parent was killed; `before` is done before it begins."""
    script = WATCHED.format(before=before, patience=PATIENCE)
    variables = {**os.environ, "PYTHONPATH": SOURCE}
    with subprocess.Popen([sys.executable, "-c", script], env=variables, stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        time.sleep(0.1)
        assert state(child) != "Z"
        parent.kill()
        deadline = time.monotonic() + PATIENCE / 4  # it would sleep for longer
        while state(child) != "Z" and time.monotonic() < deadline:
            time.sleep(0.01)
        return state(child) == "Z"


def test_a_child_ends_with_its_parent():
    never = f"_processes.LEAVING_SECONDS = {PATIENCE}"  # before it is killed: a signal ends it
    assert ends_with_its_parent(never)


def test_a_child_that_sees_no_signal_is_killed_after_a_while():
    """As one that compiles for long."""
    before = "signal.signal(signal.SIGTERM, signal.SIG_IGN); _processes.LEAVING_SECONDS = 0.5"
    assert ends_with_its_parent(before)
