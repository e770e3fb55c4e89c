"""Studies on Ray and on SLURM whose runs are at an address: nodes share no results, and come to the same
numbers. The server is a real one, as are both clusters."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from little import begin, outcome, random_play
from made_study import SPEC, performed_here, study_words, tables
from optimist.data import Dataset, Recorder
from optimist.errors import RunError
from optimist.studies import store as stores
from optimist.studies import work as works
from optimist.studies.engines._schedule import Remote, bring
from optimist.studies.job import Job
from optimist.studies.status import write_jobs
from optimist.studies.store import Store
from optimist.studies.study_file import load
from optimist.training.storage.configuration import toml
from ray_cluster import COMMAND, ray_cluster
from s3_server import s3_server
from slurm_cluster import SlurmCluster

RUNS = [*(f"runs/minatar-breakout/all/{agent}" for agent in ("dqn", "rem")), "random/minatar-breakout"]

pytestmark = pytest.mark.filterwarnings("ignore:os.fork")  # JAX warns of it, Ray starts its processes so


@pytest.fixture(scope="module")
def server():
    with s3_server() as bucket:
        yield bucket


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return performed_here(tmp_path_factory.mktemp("straight"))


def check(out: Path, straight: Path) -> None:
    assert tables(out) == tables(straight)
    for run in RUNS:
        assert outcome(out / run) == outcome(straight / run)


@pytest.mark.slow
def test_ray_nodes_need_share_no_disk(server, straight, tmp_path):
    scratch, store = tmp_path / "node", f"{server}/ray"
    with ray_cluster() as cluster:
        engine = ["--engine", "ray", "--address", cluster.address]
        engine += ["--store", store, "--scratch", str(scratch)]
        command = begin(*study_words(tmp_path, tmp_path / "out", *engine), program=COMMAND)
        told, complaints = command.communicate()
        assert command.returncode == 0, complaints
        assert "all 4 runs are done" in told
        check(tmp_path / "out", straight)
        assert not list(scratch.glob("*/runs/*/*/*"))  # they are in the store
        shutil.rmtree(tmp_path / "out")  # another machine continues
        again = begin(*study_words(tmp_path, tmp_path / "out", *engine), program=COMMAND)
        _, complaints = again.communicate()
    assert again.returncode == 0 and "4 of 4 runs are done already" in complaints
    check(tmp_path / "out", straight)


@pytest.mark.slow
def test_slurm_nodes_need_share_no_results(server, straight, tmp_path):
    store = ["--store", f"{server}/slurm", "--scratch", str(tmp_path / "node")]
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, pytest.MonkeyPatch.context() as patch:
        cluster = SlurmCluster(Path(folder))
        patch.setenv("SLURM_CONF", str(cluster.configuration))
        try:
            cluster.start()
            command = begin(*study_words(tmp_path, tmp_path / "out", "--engine", "slurm", *store))
            _, complaints = command.communicate()
        finally:
            cluster.stop()
    assert command.returncode == 0, complaints
    check(tmp_path / "out", straight)
    assert not list((tmp_path / "node").glob("*/runs/*/*/*"))


@pytest.fixture
def study(tmp_path):
    """The list of a study, and an address in this process."""
    import fsspec

    fsspec.filesystem("memory").store.clear()
    jobs = load(study_words(tmp_path, "")[2], "tiny").jobs()
    write_jobs(tmp_path / "mine", "a study", jobs)
    yield jobs, "memory://bucket/study"
    fsspec.filesystem("memory").store.clear()


def test_a_run_that_fails_at_an_address_says_why(study, tmp_path):
    [log, run, *_], address = study
    Store(address).send_file("study.json", tmp_path / "mine")
    (tmp_path / "failed").mkdir()
    (tmp_path / "failed" / "FAILED").write_text("no emulator")
    Store(address).send(tmp_path / "failed", log.name)
    with pytest.raises(RunError, match=f"{run.name}: {log.name} failed; run that first"):
        works.work(address, run=run.name, scratch=tmp_path / "node")


def test_a_node_waits_for_the_log_that_is_recorded_anew_and_takes_it_whatever_its_size(
    study, tmp_path, monkeypatch
):
    """It took the one before, or mixed files of both, and waited for ever."""
    [log, run, *_], address = study
    made = iter([recorded(tmp_path / "before", replace(log, seeds=(9,))), recorded(tmp_path / "now", log)])

    def send(_: float = 0) -> None:
        Store(address).send(next(made) / log.name, log.name)

    def learn(out: Path, *_) -> None:
        fingerprints.append(Dataset.open(out / log.name).fingerprint)
        (out / run.name).mkdir(parents=True, exist_ok=True)

    fingerprints: list[str] = []
    monkeypatch.setattr(stores, "_is_small", lambda size: size < 5000)  # all but the shards
    monkeypatch.setattr(works, "_work_in", learn)
    monkeypatch.setattr(works, "time", SimpleNamespace(sleep=send))
    Store(address).send_file("study.json", tmp_path / "mine")
    send()
    files = [tmp_path / name / log.name / "steps-000000.arrow" for name in ("before", "now")]
    assert files[0].stat().st_size == files[1].stat().st_size > 5000
    works.work(address, run=run.name, scratch=tmp_path / "node")
    assert fingerprints == [Dataset.open(tmp_path / "now" / log.name).fingerprint]


def recorded(out: Path, job: Job) -> Path:
    """What a collection leaves; the files of steps have one size for all seeds."""
    job.run_folder(out).mkdir(parents=True)
    (job.run_folder(out) / "config.toml").write_text(toml(job.expected({})))
    (job.run_folder(out) / "DONE").touch()
    with Recorder(out / job.name, SPEC, lanes=1) as recorder:
        for step in random_play(SPEC, rows=2000, lanes=1, seed=job.seeds[0]):
            recorder.add(*step)
    return out


def test_a_copy_brings_what_was_begun_elsewhere(study, tmp_path):
    [log, run, *_], address = study
    there = tmp_path / "there"
    there.mkdir()
    (there / "config.toml").write_text("")
    Store(address).send(there, run.name)
    bring([log, run], tmp_path / "mine", Remote(store=address))
    assert [path.name for path in (tmp_path / "mine" / run.name).iterdir()] == ["config.toml"]
    assert not (tmp_path / "mine" / log.name).exists()
