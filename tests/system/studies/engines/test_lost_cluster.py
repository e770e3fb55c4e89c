"""A Ray cluster that stops in the middle of a study is one line, and the study goes on later."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from little import begin
from made_study import study_words
from optimist.errors import RunError
from patience import PATIENCE
from ray_cluster import COMMAND, ray_head

pytestmark = pytest.mark.filterwarnings("ignore:os.fork")  # JAX warns of it, Ray starts its processes so

WATCHER = """
import sys, time
from optimist.studies.engines import ray
assert ray.EVERY * ray.MISSES < 30
ray.EVERY = 0.1
ray.Watch(sys.argv[1])
time.sleep(60)
"""


def test_a_head_that_no_longer_answers_ends_the_command_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        words = [sys.executable, "-c", WATCHER, address]
        command = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        head.settimeout(PATIENCE)
        head.accept()[0].close()  # it looks
    _, complaint = command.communicate(timeout=PATIENCE)
    assert command.returncode == RunError.exit_code
    assert complaint.startswith(f"optimist: the Ray cluster at {address} has stopped")
    assert complaint.count("\n") == 1


@pytest.mark.slow
def test_a_cluster_that_stops_in_mid_study(tmp_path, monkeypatch):
    folder = tempfile.mkdtemp(prefix="ray-")
    monkeypatch.setenv("RAY_TMPDIR", folder)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    run = tmp_path / "out" / "runs" / "minatar-breakout" / "all" / "dqn"
    cluster = ray_head(num_cpus=1)
    words = study_words(tmp_path, tmp_path / "out", steps=30_000)
    try:
        command = begin(*words, "--engine", "ray", "--address", cluster.address, program=COMMAND)
        deadline = time.monotonic() + PATIENCE
        while not any((run / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
            assert command.poll() is None, command.communicate()
            time.sleep(0.1)
    finally:
        cluster.shutdown()
    stopped = time.monotonic()
    _, complaint = command.communicate(timeout=PATIENCE)
    assert time.monotonic() - stopped < max(30, stopped - command.begun)  # a busy machine is slow
    assert command.returncode == RunError.exit_code, complaint
    assert complaint.splitlines()[-1].startswith("optimist: the Ray cluster at "), complaint
    assert "Traceback" not in complaint
    assert any((run / "checkpoints").glob("step-*")) and not (run / "DONE").exists()
    shutil.rmtree(folder, ignore_errors=True)
    begun = begin(*words, "--workers", "1")
    try:
        newest = max((run / "checkpoints").iterdir()).name
        while max((run / "checkpoints").glob("step-*")).name <= newest and begun.poll() is None:
            time.sleep(0.1)  # it goes on from there
        assert begun.poll() is None, begun.communicate()
    finally:
        begun.terminate()
        begun.communicate(timeout=PATIENCE)
    assert os.path.exists(run / "config.toml")
