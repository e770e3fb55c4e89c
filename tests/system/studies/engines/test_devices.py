"""Every worker sees its own GPU, and a task without GPUs sees none."""

import os
import time
from pathlib import Path

import pytest

from little import plain_python
from optimist.cli.main import main
from optimist.studies.engines import local
from optimist.studies.engines.local import LocalPool, usual_workers
from optimist.studies.job import Job


def variables_of(pid: int) -> dict[str, str]:
    words = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def test_workers_are_spread_over_the_gpus(tmp_path, monkeypatch):
    monkeypatch.delenv(local.VISIBLE, raising=False)
    pool, seen = LocalPool(tmp_path, 3, ["0", "GPU-7f"]), []
    for _ in range(3):
        worker = pool._new_worker()
        pool._workers.append(worker)
        while b"spawn" not in Path(f"/proc/{worker.process.pid}/cmdline").read_bytes():
            time.sleep(0.01)  # it is still a copy of this process
        seen.append(variables_of(worker.process.pid))
        worker.process.kill()
        worker.process.join()
    assert [found.get(local.VISIBLE) for found in seen] == ["0", "GPU-7f", "0"]
    assert {found[local.RUNS_PER_GPU] for found in seen} == {"2"}
    assert local.VISIBLE not in os.environ  # of this process nothing is changed


def test_the_share_of_a_worker(monkeypatch):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    shared = {local.RUNS_PER_MACHINE: "3", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    assert local.share(None, runs=3, gpus=0) == shared
    assert local.share("0", runs=3, gpus=1) == {local.VISIBLE: "0", local.RUNS_PER_GPU: "3", **shared}
    alone = {local.VISIBLE: "1", local.RUNS_PER_GPU: "1", local.RUNS_PER_MACHINE: "2"}
    assert local.share("1", runs=2, gpus=2) == alone  # it may reserve its GPU


def test_a_worker_that_died_is_replaced_on_its_gpu():
    assert local.least_used(["0", "1"], ["0", "1", "1"]) == "0"
    assert local.least_used(["0", "1"], ["0"]) == "1"
    assert local.least_used([], []) is None


def test_the_number_of_workers_follows_the_gpus():
    assert usual_workers(4) == 12
    assert usual_workers(4, runs_per_gpu=2) == 8
    assert usual_workers() == len(os.sched_getaffinity(0))


def test_jax_is_asked_for_the_gpus_and_those_that_the_user_chose_keep_their_names(monkeypatch):
    """Where there is none, its answer is the CPU."""
    monkeypatch.delenv("JAX_PLATFORMS")
    monkeypatch.delenv(local.VISIBLE, raising=False)
    monkeypatch.setattr(local, "PLUGINS", ("jax",))
    assert local.gpus() == []
    monkeypatch.setattr(local, "QUESTION", "print('gpu', 2)")
    assert local.gpus() == ["0", "1"]
    monkeypatch.setenv(local.VISIBLE, "3, GPU-7f,5")
    assert local.gpus() == ["3", "GPU-7f"]
    monkeypatch.setattr(local, "QUESTION", "raise SystemExit('no driver')")
    assert local.gpus() == []


def test_runs_per_gpu_without_a_gpu_is_one_line(tmp_path, capsys):
    words = ["study", "run", "asymptotic", "--scale", "tiny", "--out", str(tmp_path / "out")]
    assert main([*words, "--runs-per-gpu", "2"]) == 2
    assert "--runs-per-gpu: JAX finds no GPU here" in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("*/"))


TASK = """
from optimist.studies.engines.ray import Options, apply, environment
import jax
apply(environment(Options(gpus_per_run={gpus})))
print(jax.config.jax_platforms)
"""


@pytest.mark.parametrize(("gpus", "platforms"), [(0, "cpu"), (0.5, None), (1, None)])
def test_a_task_without_gpus_uses_none_even_if_it_sees_them(gpus, platforms, tmp_path):
    assert plain_python(TASK.format(gpus=gpus), XDG_CACHE_HOME=tmp_path) == f"{platforms}\n"


def test_a_pool_is_no_larger_than_its_study(tmp_path):
    assert local.pool(tmp_path, 1, local.Options(workers=64)).free() == 1
    assert local.pool(tmp_path, 9, local.Options(workers=2)).free() == 2


def test_a_pool_starts_no_worker_before_it_has_a_job(tmp_path):
    pool = LocalPool(tmp_path, 2)
    pool.start(list[Job]())
    assert pool._workers == []
