"""Studies on a real SLURM cluster: the numbers of one machine, whatever is lost.

The daemons are this test's own (tests/support/slurm_cluster.py says what they need); what needs no daemon is
tested quickly below."""

import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from little import begin, outcome, wait_for
from made_study import jobs as made_jobs
from made_study import performed_here, study_words, tables
from optimist.cli.main import main
from optimist.errors import UsageError
from optimist.studies.engines import slurm
from optimist.studies.engines.slurm import Options, SlurmPool, minutes, task
from optimist.studies.status import waves, write_jobs
from optimist.studies.study_file import load
from slurm_cluster import SlurmCluster

DQN, REM, RANDOM = (
    *(f"runs/minatar-breakout/all/{agent}" for agent in ("dqn", "rem")),
    "random/minatar-breakout",
)
LONG = 1500  # steps that take long enough to be interrupted


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with room for one run each; every process of this file finds them by SLURM_CONF."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, pytest.MonkeyPatch.context() as patch:
        cluster = SlurmCluster(Path(folder), more="MaxArraySize=3")  # so that arrays are divided
        patch.setenv("SLURM_CONF", str(cluster.configuration))
        patch.setattr(slurm, "ASK_SECONDS", 2.0)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return performed_here(tmp_path_factory.mktemp("straight"), steps=LONG)


def same(out: Path, straight: Path) -> bool:
    return all(outcome(out / run) == outcome(straight / run) for run in (DQN, REM, RANDOM))


def is_learning(run: Path) -> bool:
    saved = (run / "checkpoints").exists() and any((run / "checkpoints").iterdir())
    return saved and (run / ".holder").exists() and not (run / "DONE").exists()


def job_of(out: Path, name: str) -> str:
    return slurm.read_ids(out)[name]


@pytest.mark.slow
def test_a_lost_node_and_a_time_limit_cost_nothing_but_time(cluster, straight, tmp_path):
    command = begin(*study_words(tmp_path, tmp_path / "out", "--engine", "slurm", steps=LONG))
    run = tmp_path / "out" / DQN
    wait_for(lambda: is_learning(run), command)
    job = job_of(tmp_path / "out", DQN)
    cluster.asked("scancel", "--signal=USR2", job)  # as SLURM sends it before the time limit
    wait_for(lambda: cluster.asked("squeue", "-h", "-r", "-j", job, "-o", "%T") == "PENDING", command)
    wait_for(lambda: is_learning(tmp_path / "out" / REM) or is_learning(run), command)
    lost = next(name for name in (REM, DQN) if is_learning(tmp_path / "out" / name))
    node = cluster.asked("squeue", "-h", "-r", "-j", job_of(tmp_path / "out", lost), "-o", "%N")
    cluster.lose_node(node)
    told, complaints = command.communicate()
    cluster.start_node(node)
    assert command.returncode == 0, complaints
    assert "all 4 runs are done" in told
    printed = "".join(path.read_text() for path in (tmp_path / "out/slurm").glob("*.out"))
    assert "is stopped and saved" in printed and f"taking over {tmp_path / 'out' / lost}" in printed
    assert same(tmp_path / "out", straight)
    assert tables(tmp_path / "out") == tables(straight)


@pytest.mark.slow
def test_a_command_that_was_killed_finds_its_runs_in_the_queue(cluster, straight, tmp_path):
    line = study_words(tmp_path, tmp_path / "out", "--engine", "slurm", steps=LONG)
    command = begin(*line)
    wait_for(lambda: is_learning(tmp_path / "out" / DQN), command)
    command.kill()
    command.communicate()
    before = slurm.read_ids(tmp_path / "out")
    cluster.stop_controller()  # and the controller too, for a moment
    cluster.start_controller()
    again = begin(*line)
    told, complaints = again.communicate()
    assert again.returncode == 0, complaints
    assert "runs are in SLURM's queue already" in complaints
    assert slurm.read_ids(tmp_path / "out") == before
    assert same(tmp_path / "out", straight)


@pytest.mark.slow
def test_ctrl_c_saves_and_empties_the_queue_and_detach_leaves_it(cluster, tmp_path):
    line = study_words(tmp_path, tmp_path / "out", "--engine", "slurm", steps=1_000_000)
    left = begin(*line, "--detach", "yes")
    told, _ = left.communicate()
    assert left.returncode == 0 and "the runs are in the queue" in told
    command = begin(*line)
    wait_for(lambda: is_learning(tmp_path / "out" / DQN), command)
    command.send_signal(signal.SIGINT)
    _, complaints = command.communicate()
    assert command.returncode == 130 and "stopped" in complaints
    submitted = set(slurm.read_ids(tmp_path / "out").values())  # a job of an earlier test may be ending still
    assert len(submitted) == 4 and not submitted & slurm.queued()
    assert not (tmp_path / "out" / DQN / ".holder").exists()  # it left by itself


@pytest.mark.slow
def test_what_slurm_refuses_is_one_line(cluster, tmp_path, capfd):
    line = study_words(tmp_path, tmp_path / "out", "--engine", "slurm", "--partition", "nowhere")
    assert main(line) == 2
    assert "SLURM refuses the jobs: " in capfd.readouterr().err


LATER = Options(sbatch="begin=now+1hour,comment=lab")  # jobs that stay in the queue


@pytest.mark.slow
def test_runs_are_arrays_that_wait_for_their_log(cluster, tmp_path):
    jobs = made_jobs()
    pool = SlurmPool(tmp_path / "out", replace(LATER, detach=True))
    pool.start(jobs)
    pool.close()
    ids = slurm.read_ids(tmp_path / "out")
    assert len(ids) == len(jobs) == len(set(ids.values()))
    breakout, freeway, asterix = (ids[f"logs/minatar/{game}"] for game in ("breakout", "freeway", "asterix"))
    assert breakout.partition("_")[0] == freeway.partition("_")[0]  # three logs in arrays of at most two
    assert asterix.partition("_")[0] != freeway.partition("_")[0]
    for job in jobs:
        told = cluster.asked("scontrol", "show", "job", "--oneliner", ids[job.name])
        assert "Requeue=1 " in told and "Comment=lab " in told
        if job.needs:
            assert f"Dependency=afterok:{ids[job.needs[0]]}(unfulfilled) " in told
            assert "KillOInInvalidDependent=Yes" in told
    cluster.asked("scancel", *ids.values())


@pytest.mark.slow
def test_runs_in_the_queue_are_not_submitted_twice(cluster, tmp_path, capsys):
    jobs = made_jobs()
    SlurmPool(tmp_path / "out", replace(LATER, detach=True)).start(jobs)
    before = slurm.read_ids(tmp_path / "out")
    left = {name for name in before if "asterix" in name}
    cluster.asked("scancel", *(before[name] for name in before if name not in left))
    SlurmPool(tmp_path / "out", replace(LATER, detach=True)).start(jobs)
    assert "5 runs are in SLURM's queue already" in capsys.readouterr().err
    after = slurm.read_ids(tmp_path / "out")
    assert {name for name in before if before[name] == after[name]} == left
    cluster.asked("scancel", *after.values())


@pytest.mark.slow
def test_a_run_whose_job_vanished_is_started_again_and_one_without_its_log_is_not(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(slurm, "LOOK_SECONDS", 0)
    monkeypatch.setattr(slurm, "ASK_SECONDS", 0)
    log, random, *_ = made_jobs()
    pool = SlurmPool(tmp_path / "out", LATER)
    pool.start([log, random])
    cluster.asked("scancel", job_of(tmp_path / "out", random.name))
    (tmp_path / "out" / log.name).mkdir(parents=True)
    (tmp_path / "out" / log.name / "FAILED").write_text("no emulator")
    failed, vanished = pool.wait()
    assert (failed.job, failed.complaint, failed.worker_died) == (log, "no emulator", False)
    assert (vanished.job, vanished.worker_died) == (random, True)
    pool.start([random])
    assert [each.complaint for each in pool.wait()] == [f"{log.name} failed"]
    pool.close()


@pytest.mark.slow
def test_a_controller_that_does_not_answer_is_one_line(cluster, tmp_path, capfd):
    cluster.stop_controller()
    try:
        assert main(study_words(tmp_path, tmp_path / "out", "--engine", "slurm")) == 2
    finally:
        cluster.start_controller()
    complaint = capfd.readouterr().err
    assert "SLURM refuses squeue: " in complaint and complaint.count("\n") == 1


MISTAKES = [
    ("--time soon", '"soon" is not a time: write minutes, H:MM or D-HH:MM'),
    ("--time 0", "a time limit of 0 leaves no time to run"),
    ("--sbatch account", '"account" is not a list of options: write account=lab,qos=long'),
    ("--gpus-per-run 0.5", '"0.5" is not a whole number'),
    ("--cpus-per-run 0", "give each run at least one core"),
    ("--workers 2", "--workers is for another engine: add --engine local"),
    ("--address a:1", "--address is for another engine: add --engine ray"),
    ("", "squeue is not installed: run this on a node of a SLURM cluster"),
]


@pytest.mark.parametrize(("more", "phrase"), MISTAKES, ids=[more for more, _ in MISTAKES])
def test_a_mistake_is_one_line(more, phrase, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(study_words(tmp_path, tmp_path / "out", "--engine", "slurm", *more.split())) == 2
    complaint = capsys.readouterr().err
    assert phrase in complaint and complaint.count("\n") == 1
    assert not list((tmp_path / "out").glob("*/"))


def test_without_submitit_the_line_that_installs_it_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert main(study_words(tmp_path, tmp_path / "out", "--engine", "slurm")) == 2
    assert 'submitit is not installed: pip install "optimist' in capsys.readouterr().err


@pytest.mark.parametrize(("text", "count"), [("90", 90), ("1:30", 90), ("2-01:30", 2 * 24 * 60 + 90)])
def test_times_are_written_as_people_write_them(text, count):
    assert minutes(text) == count


def test_what_a_job_asks_for():
    asked = Options(
        partition="gpu", time="30", memory_per_run=1.5, cpus_per_run=4, gpus_per_run=1, runs_at_once=7
    ).parameters()
    assert asked == {
        "partition": "gpu",
        "time": 30,
        "mem": "1536M",
        "cpus_per_task": 4,
        "gpus_per_node": 1,
        "array_parallelism": 7,
        "signal_delay_s": 120,
        "stderr_to_stdout": True,
    }
    assert Options(time="1").parameters()["signal_delay_s"] == 30  # or it would stop when it begins


def test_jobs_come_after_those_that_they_need():
    jobs = made_jobs()
    first, second = waves([*reversed(jobs)])
    assert {job.collects for job in first} == {True} and {job.collects for job in second} == {False}
    assert len(first) + len(second) == len(jobs)
    failed = {jobs[0].name}
    assert not any(set(job.needs) & failed for wave in waves(jobs[1:]) for job in wave)


def test_a_module_of_the_users_own_is_allowed_on_the_node(tmp_path):
    own = replace(made_jobs()[0], agent="mine.agents:Own", environment="/home/me/games.py:Games/chess")
    allowed = ("--allow", "mine.agents", "--allow", "/home/me/games.py")
    assert task(replace(own, restart=True), tmp_path, Options()).words == (
        *(str(tmp_path), "--run", own.name, "--restart"),
        *allowed,
    )
    assert task(own, tmp_path, Options(store="s3://bucket/mine", scratch="/scratch")).words == (
        *("s3://bucket/mine", "--run", own.name, "--scratch", "/scratch"),
        *allowed,
    )


def test_a_reason_for_a_refusal_is_shown():
    refusal = "import sys; sys.exit('squeue: error:\\nno controller')"
    with pytest.raises(UsageError, match=r"SLURM refuses \S+: squeue: error: no controller$"):
        slurm.answer(sys.executable, "-c", refusal)


def test_work_takes_one_run_by_number_or_name(tmp_path, capsys):
    jobs = load(study_words(tmp_path, "")[2], "tiny").jobs()
    write_jobs(tmp_path / "out", "a study", jobs)
    for more, phrase in (
        (["--index", "4"], "--index 4: the study has 4 runs, 0 to 3"),
        (["--index", "-1"], "--index -1: the study has 4 runs, 0 to 3"),
        (["--run", "runs/minatar-breakout/all/dqm"], f'did you mean "{DQN}"?'),
        ([], "name one run: --index N, or --run NAME"),
        (["--index", "1", "--run", DQN], "name one run: --index N, or --run NAME"),
    ):
        assert main(["study", "work", str(tmp_path / "out"), *more]) == 2
        assert phrase in capsys.readouterr().err
    assert main(["study", "work", str(tmp_path / "nowhere"), "--index", "0"]) == 4


@pytest.mark.parametrize(
    "names",
    [
        {"environment": "wicked:Games/chess"},
        {"options": {"network.torso": "wicked:Torso"}},
        {"options": {"network": "wicked:Torso"}},
        {"options": {"network": {"torso": "wicked:Torso"}}},
        {"settings": {"loggers": "jsonl, wicked:Logger"}},
        {"settings": {"loggers": ["wicked:Logger"]}},
    ],
    ids=str,
)
def test_work_refuses_a_module_that_the_folder_names(names, tmp_path, capsys):
    write_jobs(tmp_path, "a study", [replace(made_jobs()[0], **names)])
    assert main(["study", "work", str(tmp_path), "--index", "0"]) == 3
    assert 'imports the module "wicked"; if you trust it: --allow wicked' in capsys.readouterr().err


def test_work_does_not_wait_for_a_log_that_failed(tmp_path, capsys):
    log, run, *_ = made_jobs()
    write_jobs(tmp_path, "a study", [log, run])
    (tmp_path / log.name).mkdir(parents=True)
    (tmp_path / log.name / "FAILED").write_text("no emulator")
    assert main(["study", "work", str(tmp_path), "--index", "1"]) == 4
    assert f"{run.name}: {log.name} failed; run that first" in capsys.readouterr().err
    assert (tmp_path / run.name / "FAILED").read_text() == f"{log.name} failed"


def test_work_performs_a_run(tmp_path, capsys):
    assert main(study_words(tmp_path, tmp_path / "out", "--prepare")) == 0
    assert "4 runs in" in capsys.readouterr().out
    assert main(["study", "work", str(tmp_path / "out"), "--index", "0"]) == 0
    assert (tmp_path / "out/logs/minatar-breakout/agent/DONE").exists()
    assert main(["study", "work", str(tmp_path / "out"), "--index", "0"]) == 0
    assert "is done already" in capsys.readouterr().err
