"""Studies performed by real processes: in order, once, whoever dies on the way, and with the same results."""

import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from little import outcome
from optimist.cli.study import status_table
from optimist.errors import RunError, UsageError
from optimist.studies.engines import _schedule
from optimist.studies.engines._schedule import Progress, perform_all
from optimist.studies.engines.local import LocalPool, cores_each
from optimist.studies.job import Job
from optimist.studies.perform import with_logs_of
from optimist.studies.status import (
    check_settings,
    job_status,
    note_failure,
    read_record,
    restarted,
    standings,
    write_jobs,
)
from optimist.studies.work import work
from optimist.training import terminal
from optimist.training.online import OnlineTraining

GAME = "minatar/breakout"
SMALL_NETWORK = {"network": "mlp"}


def jobs(steps: int = 60) -> list[Job]:
    """A log, and two agents that learn from it."""
    common = {"environment": GAME, "preset": None, "recipe": "small", "options": SMALL_NETWORK}
    play = {"steps": 200, "lanes": 4, "warm_up": 40, "batch": 8}
    learn = {"steps": steps, "evaluate_every": 20, "episodes": 1, "batch": 8, "checkpoint_seconds": 0.0}
    return [
        Job(name="logs/breakout", agent="dqn", seeds=(0,), settings=play, **common),
        *(
            Job(
                name=f"runs/{agent}",
                agent=agent,
                seeds=(0, 1),
                settings=learn,
                data="logs/breakout",
                needs=("logs/breakout",),
                **common,
            )
            for agent in ("dqn", "behaviour_cloning")
        ),
    ]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The study, performed by one worker without mishap, and what was told."""
    out, told = tmp_path_factory.mktemp("straight"), []
    assert perform_all(jobs(), out, LocalPool(out, 1), told.append) == []
    return out, told


def test_every_job_is_performed_after_what_it_needs(straight):
    out, told = straight
    assert [line.split()[0] for line in told] == ["logs/breakout", "runs/dqn", "runs/behaviour_cloning"]
    assert all(job.done(out) for job in jobs())
    assert "updates" in (out / "runs/dqn/log.txt").read_text()


@pytest.mark.slow
def test_the_logs_of_another_study_give_the_same_results_and_are_not_played_again(straight, tmp_path):
    there, _ = straight
    told: list[str] = []
    moved = with_logs_of(there, jobs(), jobs())
    assert perform_all(moved, tmp_path, LocalPool(tmp_path, 1), told.append) == []
    assert [line.split()[0] for line in told] == ["runs/dqn", "runs/behaviour_cloning"]
    assert not (tmp_path / "logs").exists()
    for run in ("runs/dqn", "runs/behaviour_cloning"):
        assert outcome(tmp_path / run) == outcome(there / run)


def test_logs_by_another_recipe_and_unfinished_ones_are_refused(straight, tmp_path):
    there, _ = straight
    log, *runs = jobs()
    longer = replace(log, settings={**log.settings, "steps": 400})
    for place, recipe in ((there, longer), (tmp_path, log)):
        with pytest.raises(UsageError, match="has no finished logs/breakout with these settings"):
            with_logs_of(place, jobs(), [recipe, *runs])
    with pytest.raises(UsageError, match="collects no logs"):
        with_logs_of(there, jobs(), runs)


def edited(**changes) -> list[Job]:
    """The same study after somebody edited its file: other settings of the runs."""
    log, *runs = jobs()
    return [log, *(replace(job, **changes) for job in runs)]


OTHER_GAMMA = {"settings": {**jobs()[1].settings, "gamma": 0.9}}
OTHER_RATE = {"options": {**SMALL_NETWORK, "optimizer.learning_rate": 0.01}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (OTHER_GAMMA, "training.gamma: 0.99 saved, 0.9 requested"),
        (OTHER_RATE, "agent.optimizer.learning_rate: 0.0005 saved, 0.01 requested"),
        ({"settings": {**jobs()[1].settings, "steps": 20}}, "training.steps: 60 saved, 20 requested"),
        ({"seeds": (0, 2)}, "seeds: [0, 1] saved, [0, 2] requested"),
        ({"environment": "minatar/freeway"}, "environment: 'minatar/breakout' saved"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_edited_study_does_not_report_the_numbers_of_the_old_one(straight, changes, said):
    out, _ = straight
    log, *runs = edited(**changes)
    assert log.done(out) and not any(job.done(out) for job in runs)
    with pytest.raises(RunError, match="2 of 3 runs in .* were made with other settings") as caught:
        check_settings([log, *runs], out, standings([log, *runs], out))
    assert said in str(caught.value) and "--restart" in str(caught.value)
    now = job_status(runs[0], out)
    assert now.state == "by other settings" and said in now.complaint
    assert status_table("a study", [now]).notes == ["0 of 1 done", f"{now.name}: {now.complaint}"]


def test_more_steps_are_the_same_run_continued(straight):
    out, _ = straight
    longer = jobs(steps=80)
    check_settings(longer, out, standings(longer, out))
    assert [job.done(out) for job in longer] == [True, False, False]


def begun_anew(jobs: list[Job], out: Path) -> list[Job]:
    return restarted(jobs, standings(jobs, out))


@pytest.mark.slow
def test_restarting_begins_anew_what_differs_and_what_learned_from_it(straight, tmp_path):
    out = shutil.copytree(straight[0], tmp_path / "study")
    anew = begun_anew(edited(**OTHER_GAMMA), out)
    assert [job.restart for job in anew] == [False, True, True]
    assert perform_all(anew, out, LocalPool(out, 1), lambda line: None) == []
    assert all(job.done(out) for job in edited(**OTHER_GAMMA)) and not jobs()[1].done(out)
    log, *runs = jobs()
    other_log = replace(log, settings={**log.settings, "steps": 400})
    # A longer log is the same log continued; what learned from the shorter one begins anew.
    anew = begun_anew([other_log, *edited(**OTHER_GAMMA)[1:]], out)
    assert [job.restart for job in anew] == [False, True, True]


def test_runs_begin_anew_with_their_log_though_they_are_done_until_then(straight):
    """They were left as they were, and once the new log was there the report called them unfinished."""
    out, _ = straight
    log, *runs = jobs()
    for other_log in ({"seeds": (7,)}, {"settings": {**log.settings, "steps": 400}}):
        anew = begun_anew([replace(log, **other_log), *runs], out)
        assert anew[0].restart or not anew[0].done(out)
        assert [job.restart for job in anew[1:]] == [True, True]


def test_a_run_that_is_started_alone_with_restart_waits_for_its_log(straight, tmp_path):
    """It was said to be done, by the log that is to be replaced. Here the new log failed."""
    out = shutil.copytree(straight[0], tmp_path / "study")
    log, *runs = jobs()
    write_jobs(out, "a study", [replace(log, seeds=(7,)), *runs])
    note_failure(log, out, "no room")
    with pytest.raises(RunError, match="runs/dqn: logs/breakout failed; run that first"):
        work(out, run="runs/dqn", restart=True)
    work(out, run="runs/dqn")
    assert runs[0].done(out)


def test_a_run_that_learned_from_a_log_that_is_no_longer_there_is_not_done(straight, tmp_path):
    out = shutil.copytree(straight[0], tmp_path / "study")
    log, run, _ = jobs()
    again = OnlineTraining(
        log.built_agent(), GAME, log.record(), out=out / log.name, seeds=(7,), restart=True
    )
    again.run()
    (said,) = run.standing(out).changes
    assert not run.done(out) and "dataset.recording" in said
    assert said.endswith(" requested (another log, or it has grown since)")


def test_a_run_without_its_configuration_is_not_done(straight, tmp_path):
    out = shutil.copytree(straight[0], tmp_path / "study")
    (out / "runs/dqn/config.toml").unlink()
    assert not jobs()[1].done(out) and jobs()[1].standing(out).changes


def test_a_worker_that_is_killed_is_replaced_and_the_results_are_the_same(straight, tmp_path):
    told, pool = [], LocalPool(tmp_path, 2)

    def kill_one_that_trains():
        while not (tmp_path / "runs/dqn/metrics.jsonl").exists():
            time.sleep(0.01)
        busy = [worker for worker in pool._workers if worker.job is not None]
        os.kill(busy[0].process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one_that_trains)
    killer.start()
    assert perform_all(jobs(), tmp_path, pool, told.append) == []
    killer.join()
    assert sum("its process ended with code -9; another worker continues it" in line for line in told) == 1
    for run in ("runs/dqn", "runs/behaviour_cloning"):
        assert outcome(tmp_path / run) == outcome(straight[0] / run)


def test_a_job_that_fails_takes_only_what_needs_it_along(straight, tmp_path):
    log, one, _ = jobs()
    broken = replace(log, name="logs/broken", agent="td3", options={})
    lost = replace(one, data="logs/broken", needs=("logs/broken",))
    there = str(straight[0] / log.name)
    other = replace(one, name="runs/random", agent="random", options={}, data=there, needs=())
    failed = perform_all([broken, lost, other], tmp_path, LocalPool(tmp_path, 1), lambda line: None)
    assert {ended.job.name for ended in failed} == {"logs/broken", "runs/dqn"}
    assert "discrete" in failed[0].complaint and failed[1].complaint == "logs/broken failed"
    assert other.done(tmp_path)
    later = job_status(broken, tmp_path)  # what a report says that is made tomorrow
    assert (later.state, later.complaint) == ("failed", failed[0].complaint)


def test_a_study_tells_how_far_it_is(straight, tmp_path):
    out, _ = straight
    write_jobs(out, "a study", jobs())
    known = read_record(out).jobs
    assert read_record(out).title == "a study" and [job.unresolved for job in known] == jobs()
    assert [job_status(job, out).state for job in known] == ["done"] * 3
    longer = jobs(steps=100)[1]
    (Path(out) / "runs/dqn/DONE").unlink()
    now = job_status(longer, out)
    assert (now.state, now.step, now.steps) == ("stopped", 60, 100)
    assert job_status(jobs()[1], tmp_path).state == "waiting"


@pytest.mark.parametrize(("cores", "jobs", "each"), [(16, 3, 5), (16, 16, 1), (8, 20, 1), (4, 2, None)])
def test_jobs_share_the_cores_where_there_are_many(monkeypatch, cores, jobs, each):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert cores_each(jobs) == each


def test_the_progress_of_a_run_that_begins_anew_does_not_count_its_old_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(_schedule, "LOOK_SECONDS", 0)
    run = replace(jobs()[1], restart=True)
    metrics = run.run_folder(tmp_path) / "metrics.jsonl"
    metrics.parent.mkdir(parents=True)
    metrics.write_text('{"step": 40}\n')
    progress, shown = Progress([run], tmp_path), []
    monkeypatch.setattr(progress._bar, "update", lambda steps, note: shown.append(steps))
    for step in (40, None, 20, 40, 60):  # the worker deletes the old run, and the new one passes its steps
        metrics.unlink()
        metrics.write_text(f'{{"step": {step}}}\n' if step else "")
        progress.show((), [run.name])
    progress.close()
    assert shown == [0, 0, 20, 40, 60]


def test_the_rate_of_a_continued_study_does_not_count_what_was_done_before(tmp_path, monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(_schedule, "LOOK_SECONDS", 0)
    known = jobs()
    active, waits = (job.run_folder(tmp_path) / "metrics.jsonl" for job in known[1:])
    for metrics in (active, waits):
        metrics.parent.mkdir(parents=True)
        metrics.write_text('{"step": 40}\n')
    bar = Progress(known[1:], tmp_path)
    for step in (40, 20, 60):  # the run goes back to its checkpoint, and on from there
        clock[0] += 20
        active.write_text(f'{{"step": {step}}}\n')
        bar.show((), [known[1].name])
    bar.close()
    assert capsys.readouterr().out.splitlines() == [
        "all runs: 80/120 steps  0 of 2 runs done",
        "all runs: 60/120 steps  0 of 2 runs done",
        "all runs: 100/120 steps, 1/s, 30 s left  0 of 2 runs done",
    ]
