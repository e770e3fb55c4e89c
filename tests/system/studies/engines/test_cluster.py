"""Studies on a real Ray cluster of several nodes: the numbers of one machine, whichever node is lost."""

import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from little import begin, outcome, wait_for
from made_study import performed_here, study_words, tables
from optimist.cli.main import main
from optimist.studies.engines import ray as engine
from optimist.studies.engines._schedule import perform_all
from optimist.studies.engines.ray import Options, RayPool
from optimist.studies.job import Job
from optimist.studies.report.study_report import write_findings
from optimist.studies.status import write_jobs
from optimist.studies.study_file import load
from ray_cluster import COMMAND, add_node, ray_cluster

# Ray starts its processes by a plain fork, of which JAX warns where it has run before in the same process.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork")

LOG, DQN, REM = "logs/minatar-breakout", "runs/minatar-breakout/all/dqn", "runs/minatar-breakout/all/rem"
CLOSED = "127.0.0.1:1"  # nobody listens there
STEPS = 300  # long enough to lose a node meanwhile


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return performed_here(tmp_path_factory.mktemp("straight"), steps=STEPS)


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster() as cluster:
        yield cluster


def begun(straight: Path, out: Path, steps: int = STEPS) -> list[Job]:
    """A study whose logs are there already."""
    _, _, study, *_ = study_words(out, out, steps=steps)
    jobs = load(study, "tiny").jobs()
    write_jobs(out, "a study", jobs)
    shutil.copytree(straight / LOG, out / LOG)
    return jobs


def holder(run: Path) -> int:
    """The process that works on a run."""
    return int((run / ".holder").read_text().split()[1])


def is_learning(run: Path) -> bool:
    return (run / "metrics.jsonl").exists() and (run / ".holder").exists()


def test_a_cluster_comes_to_the_same_numbers_and_tables(straight, cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the workers are not
    engine = ("--engine", "ray", "--address", cluster.address)
    command = begin(*study_words(tmp_path, "out", *engine, steps=STEPS), program=COMMAND)
    told, complaints = command.communicate()
    assert command.returncode == 0, complaints
    assert complaints.count(" is done (") == 4
    assert complaints.count("scores there are divided by this small difference") == 1  # it hardly learned
    assert complaints.count("\n") == 5  # nothing from Ray
    assert "all 4 runs are done in out" in told
    for run in (DQN, REM, "random/minatar-breakout"):
        assert outcome(tmp_path / "out" / run) == outcome(straight / run)
    assert tables(tmp_path / "out") == tables(straight)


@pytest.mark.slow
def test_a_node_that_is_lost_costs_nothing_but_time(straight, cluster, tmp_path):
    jobs, told, over = begun(straight, tmp_path), [], threading.Event()

    def lose_the_node_that_trains():
        while not is_learning(tmp_path / DQN):
            if over.wait(0.01):
                return
        raylet = int(Path(f"/proc/{holder(tmp_path / DQN)}/stat").read_text().rpartition(")")[2].split()[1])
        [node] = [n for n in cluster.worker_nodes if n.all_processes["raylet"][0].process.pid == raylet]
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=lose_the_node_that_trains)
    killer.start()
    try:
        assert (
            perform_all(jobs, tmp_path, RayPool(tmp_path, Options(address=cluster.address)), told.append)
            == []
        )
    finally:
        over.set()
        killer.join()
        add_node(cluster)
    [lost] = [line for line in told if line.endswith("another worker continues it")]
    assert lost.startswith(f"{DQN}: its node or worker was lost")
    assert "taking over" in (tmp_path / DQN / "log.txt").read_text()
    for run in (DQN, REM):
        assert outcome(tmp_path / run) == outcome(straight / run)
    write_findings(tmp_path)
    assert tables(tmp_path) == tables(straight)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.slow
def test_a_command_that_is_stopped_has_every_run_save_and_leave(number, code, straight, cluster, tmp_path):
    begun(straight, tmp_path, steps=1_000_000)
    engine = ("--engine", "ray", "--address", cluster.address)
    line = study_words(tmp_path, tmp_path, *engine, steps=1_000_000)
    command = begin(*line, program=COMMAND)
    runs = [tmp_path / DQN, tmp_path / REM]
    wait_for(lambda: all(map(is_learning, runs)), command)
    for run in runs:  # one core, one thread
        names = [path.read_text() for path in Path(f"/proc/{holder(run)}/task").glob("*/comm")]
        assert names.count("tf_XLAEigen\n") == 1
    command.send_signal(number)
    _, complaints = command.communicate()
    assert command.returncode == code
    *before, last = complaints.splitlines()
    assert last.startswith("optimist: stopped")
    assert all(" done " in line for line in before), complaints  # and nothing from Ray
    assert not any((run / ".holder").exists() for run in runs)  # they left by themselves
    assert all(list((run / "checkpoints").iterdir()) for run in runs)


def test_a_node_that_does_not_see_the_folder_says_so(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = Path("/proc/self/cwd")  # the same path everywhere, another folder for every process
    [log, *_] = jobs = load(study_words(tmp_path, out)[2], "tiny").jobs()
    write_jobs(out, "a study", jobs)
    [failed] = perform_all([log], out, RayPool(out, Options(address=cluster.address)), lambda line: None)
    assert failed.complaint == (
        f"{socket.gethostname()} does not see the study in {out}: choose an --out that all nodes share, "
        "or a --store"
    )


def test_a_run_that_fits_on_no_node_is_told_of(cluster, tmp_path, capsys):
    RayPool(tmp_path, Options(address=cluster.address, cpus_per_run=64)).close()
    assert "no node has the 64 cores and 0 GPUs" in capsys.readouterr().err


def test_no_node_searches_the_folder_that_the_command_was_given_in(cluster, tmp_path, monkeypatch):
    import ray

    monkeypatch.chdir(tmp_path)
    engine.connect(ray, cluster.address)
    try:
        searched = ray.get(
            ray.remote(num_cpus=1)(lambda: [str(Path(entry).resolve()) for entry in sys.path]).remote()
        )
    finally:
        ray.shutdown()
    assert searched and str(tmp_path) not in searched
    assert Path.cwd() == tmp_path


MISTAKES = [
    ("--engine rai", 'there is no engine "rai": did you mean "ray"?'),
    ("--address 10.0.0.1:6379", "--address is for another engine: add --engine ray"),
    ("--gpus-per-run 1", "--gpus-per-run is for another engine: add --engine ray"),
    ("--store s3://bucket/study", "--store is for another engine: add --engine ray"),
    ("--engine ray --store bucket", "--store bucket is not an address: name one, such as s3://"),
    ("--engine ray --scratch /tmp", "--scratch is for runs at an address: add --store, or leave out"),
    ("--engine ray --workers 2", "--workers is for another engine: add --engine local"),
    ("--engine ray --cpus-per-run 0", "cpus_per_run is 0: it must be above 0"),
    ("--engine ray --gpus-per-run 1.5", "gpus_per_run is 1.5: it must be from 0 to 1, or a whole number"),
    ("--engine ray --address head", '"head" is not the address of a cluster: write HOST:PORT of its head'),
    ("--engine ray --address ray://head:10001", "is not the address of a cluster"),
    ("--engine ray --address head.invalid:6379", "cannot connect to a Ray cluster at head.invalid:6379"),
    (
        f"--engine ray --address {CLOSED}",
        f"cannot connect to a Ray cluster at {CLOSED} (Connection refused): give",
    ),
    ("--engine ray", "(Connection refused)"),  # at RAY_ADDRESS
]


@pytest.mark.parametrize(("more", "phrase"), MISTAKES, ids=[more for more, _ in MISTAKES])
def test_a_mistake_is_one_line_at_once(more, phrase, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("RAY_ADDRESS", CLOSED)
    begun_at = time.monotonic()
    assert main(study_words(tmp_path, tmp_path / "out", *more.split())) == 2
    assert time.monotonic() - begun_at < 10
    complaint = capfd.readouterr().err
    assert complaint.startswith("optimist: ") and complaint.count("\n") == 1
    assert phrase in complaint
    assert not list((tmp_path / "out").glob("*/"))


def test_what_is_no_cluster_is_given_up_in_one_line(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(engine, "ANSWER_SECONDS", 3)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert main(study_words(tmp_path, tmp_path / "out", "--engine", "ray", "--address", address)) == 2
    complaint = capfd.readouterr().err
    assert complaint.count("\n") == 1
    assert f"cannot connect to a Ray cluster at {address} (no answer within 3 s)" in complaint


def test_without_ray_the_line_that_installs_it_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(study_words(tmp_path, tmp_path / "out", "--engine", "ray")) == 2
    assert 'ray is not installed: pip install "optimist-rl[ray]"' in capsys.readouterr().err
