"""A dry run says what a study takes, by runs that were measured, and what it does not know."""

import json
from dataclasses import replace

import pytest

from made_study import jobs, write_study
from optimist.cli.estimates import lines
from optimist.cli.main import main
from optimist.studies.rates import FILE, Took, estimates, measured, took
from optimist.training import memory

TOOK = {"steps": 400, "seconds": 80.0, "device_seconds": 40.0, "memory": 2**30, "device": "H9000"}


@pytest.fixture
def study(tmp_path):
    """A study of three games whose runs in the first two were measured."""
    out = write_study(tmp_path / "measured")
    for job in jobs():
        if job.environment != "minatar/asterix" and job.label:
            (out / job.name / FILE).write_text(json.dumps(TOOK))
    return out


def test_a_longer_run_takes_in_proportion_to_its_steps(study):
    [job] = [job for job in jobs() if job.name == "runs/minatar/breakout/all/REM"]
    ten_times = replace(job, settings={**job.settings, "steps": 4000})
    [found] = estimates([ten_times], [study])
    assert found.device_seconds == pytest.approx(400)
    assert (found.memory, found.device) == (2**30, "H9000")
    alike = (study / job.name).parent.iterdir()  # the same settings under other labels
    assert found.disk == max(sum(path.stat().st_size for path in run.iterdir()) for run in alike)


def test_another_game_of_the_family_stands_in_and_other_settings_do_not(study):
    [job] = [job for job in jobs() if job.name == "runs/minatar/asterix/all/REM"]
    other_batch = replace(job, settings={**job.settings, "batch": 64})
    more_seeds = replace(job, seeds=(0, 1, 2, 3))
    found = estimates([job, other_batch, more_seeds, replace(job, agent="rem")], [study])
    assert [each.device_seconds for each in found] == [pytest.approx(40), None, None, None]


def test_the_lines_name_what_is_unknown(study, tmp_path):
    wanted = jobs()
    time, space, disk = lines(wanted, estimates(wanted, [study]), tmp_path, price=9.0)
    assert time.startswith("device time: 6.0 minutes of H9000, by the measured rates of such runs; ")
    assert "at 9 an hour 0.90; unknown for 6 of 15 runs: logs/minatar/breakout, " in time
    assert space.startswith("memory: at most 1.0 GiB a run; this machine has ")
    assert " MiB for 9 of 15 runs; " in disk and " are free at " in disk


def test_what_nobody_measured_is_said_to_be_unknown(tmp_path, capsys):
    words = ["study", "run", "asymptotic", "--scale", "tiny", "--dry-run"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "device time: unknown, because no run with these settings was measured" in told
    assert "memory: unknown; this machine has " in told and "disk: unknown; " in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        ("--dry-run --rates nowhere", "--rates nowhere is not a study's folder: it has no study.json"),
        ("--dry-run --price -1", "--price is -1: give 0 or more for one device and one hour"),
        ("--price 3", "--price is for --dry-run: add it, or leave out --price"),
        ("--rates nowhere", "--rates is for --dry-run: add it"),
    ],
)
def test_mistakes_are_one_line(words, phrase, tmp_path, capsys):
    assert main(["study", "run", "asymptotic", "--out", str(tmp_path / "out"), *words.split()]) == 2
    assert phrase in capsys.readouterr().err


def grow(run, step: int) -> None:
    with (run / "metrics.jsonl").open("a") as stream:
        stream.write(json.dumps({"step": step}) + "\n")


def test_attempts_add_up_and_the_runs_that_shared_the_device_count(tmp_path, monkeypatch):
    [job] = [job for job in jobs() if job.name == "runs/minatar/breakout/all/REM"]
    run = job.run_folder(tmp_path)
    run.mkdir(parents=True)
    (run / "versions.json").write_text('{"device": "cpu"}')
    monkeypatch.setenv(memory.RUNS_PER_MACHINE, "4")
    with measured(job, tmp_path):
        grow(run, 100)
    first = took(run)
    with pytest.raises(KeyboardInterrupt), measured(job, tmp_path):
        grow(run, 150)
        raise KeyboardInterrupt
    both = took(run)
    assert (first.steps, both.steps, both.device) == (100, 150, "cpu")
    assert both.seconds > first.seconds > 0
    assert both.device_seconds == pytest.approx(both.seconds / 4)
    assert both.memory > 2**20
    with measured(job, tmp_path):
        pass
    assert took(run) == both  # nothing was done
    (run / FILE).write_text("damaged")
    assert took(run) == Took()
