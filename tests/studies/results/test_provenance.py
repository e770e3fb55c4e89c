"""The settings in which two studies differ are found between runs of the same kind."""

from dataclasses import replace
from pathlib import Path

import pytest

from made_study import jobs
from optimist.studies.job import Job
from optimist.studies.results.provenance import Difference, differences
from optimist.training.storage.configuration import toml


def runs_of_each_seed(out: Path, seeds: tuple[int, ...] = (1, 2, 3), batch: int = 32) -> list[Job]:
    """A study whose logs are named with {run}: one run for each seed."""
    (run,) = [job for job in jobs(agents=("REM",), games=("minatar/breakout",), batch=batch) if job.label]
    found = [replace(run, name=f"{run.name}/{seed}", seeds=(seed,), needs=()) for seed in seeds]
    for job in found:
        job.run_folder(out).mkdir(parents=True)
        (job.run_folder(out) / "config.toml").write_text(toml(job.expected({})))
        (job.run_folder(out) / "DONE").touch()
    return found


def test_runs_of_single_seeds_are_compared_seed_by_seed(tmp_path):
    """All were compared with the other study's last one, so the seeds of two equal studies differed."""
    one, other = tmp_path / "one", tmp_path / "other"
    assert differences(runs_of_each_seed(one), one, runs_of_each_seed(other), other) == []


def test_a_changed_setting_is_named_with_its_runs(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    ones, others = runs_of_each_seed(one), runs_of_each_seed(other, batch=64)
    names = tuple(job.name for job in ones)
    assert differences(ones, one, others, other) == [Difference("training.batch", "32", "64", names)]


def test_a_run_of_other_seeds_is_still_compared(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    ones, others = runs_of_each_seed(one, (1,)), runs_of_each_seed(other, (2,))
    assert differences(ones, one, others, other) == [Difference("seeds", "[1]", "[2]", (ones[0].name,))]


def test_a_seed_that_one_study_has_more_of_is_no_difference_but_in_the_number_of_seeds(tmp_path):
    """It was compared with another seed's run, so its log was said to differ."""
    one, other = tmp_path / "one", tmp_path / "other"
    ones, others = runs_of_each_seed(one, (1, 2)), runs_of_each_seed(other, (1,))
    config = ones[1].run_folder(one) / "config.toml"
    config.write_text(config.read_text() + '[dataset]\nrecording = "of another player"\n')
    seeds = Difference("seeds", "[1, 2]", "[1]", (ones[0].name,))
    assert differences(ones, one, others, other) == [seeds]
    turned = Difference("seeds", "[1]", "[1, 2]", (others[0].name,))
    assert differences(others, other, ones, one) == [turned]


@pytest.mark.parametrize("gone", ["DONE", "config.toml"])
def test_a_run_that_is_not_finished_has_no_settings_to_compare(tmp_path, gone):
    """It is not on the page. Before it began, all settings of the other study's run were said to differ."""
    one, other = tmp_path / "one", tmp_path / "other"
    ones, others = runs_of_each_seed(one, batch=64), runs_of_each_seed(other)
    for job in others:
        for name in ("DONE", gone):
            (job.run_folder(other) / name).unlink(missing_ok=True)
    assert differences(ones, one, others, other) == differences(others, other, ones, one) == []
