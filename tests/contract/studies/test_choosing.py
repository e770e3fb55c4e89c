"""A study that selects: policies are chosen by the part of the log that the runs learned from, once."""

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from little import played
from optimist.choosing.estimators import available
from optimist.cli.main import main
from optimist.data import Dataset
from optimist.studies import study_file
from optimist.studies.job import Job, perform_job
from optimist.studies.perform import choose_policies
from optimist.studies.results.findings import evaluated
from optimist.studies.results.regrets import ALL
from optimist.studies.status import standings
from optimist.training.storage.selected import NAME, read_selection

GAME = "minatar/breakout"
PAPER = ("asymptotic", "dataset-quality", "dataset-size", "dqn-vs-qr", "multi-network")


def runs(log: Path) -> list[Job]:
    """Two agents, each on half of the log and on all of it."""
    return [
        Job(
            name=f"runs/{part}/{agent}",
            environment=GAME,
            agent=agent,
            preset=None,
            recipe="small",
            seeds=(0,),
            options={"network": "mlp"},
            settings={"steps": 20, "evaluate_every": 10, "episodes": 1, "batch": 4},
            data=str(log),
            view=view,
            label=agent,
            part=part,
        )
        for part, view in (("half", {"fraction": 0.5}), ("all", {}))
        for agent in ("dqn", "behaviour_cloning")
    ]


@pytest.fixture(scope="module")
def chosen(tmp_path_factory) -> tuple[Path, list[Job]]:
    out = tmp_path_factory.mktemp("study")
    jobs = runs(played(out / "log"))
    for job in jobs:
        perform_job(job, out)
    choose_policies(jobs, out, {"updates": 2})
    return out, jobs


def test_what_a_run_did_not_learn_from_is_not_used_to_choose(chosen):
    out, jobs = chosen
    log = Dataset.open(out / "log")
    for job in jobs:
        part = log.fraction(0.5) if job.part == "half" else log
        assert read_selection(job.run_folder(out))["used"] == len(part)
    assert len(log.fraction(0.5)) < len(log)


def test_agents_of_one_part_are_chosen_among_together_and_only_once(chosen):
    out, jobs = chosen
    files = [job.run_folder(out) / NAME for job in jobs]
    assert all(read_selection(file.parent)["runs"] == 2 for file in files)
    before = [file.stat().st_mtime_ns for file in files]
    choose_policies(jobs, out, {"updates": 2})
    assert [file.stat().st_mtime_ns for file in files] == before


def test_a_continued_run_is_selected_again(chosen, tmp_path):
    out = shutil.copytree(chosen[0], tmp_path / "study")
    longer = [
        replace(job, settings={**job.settings, "steps": 30}, data=str(out / "log")) for job in chosen[1]
    ]
    for job in longer:
        perform_job(job, out)
    assert [run.selection for run in evaluated(longer, out, standings(longer, out))] == [
        None
    ] * 4  # it chose among the earlier ones
    choose_policies(longer, out, {"updates": 2})
    for run in evaluated(longer, out, standings(longer, out)):
        assert run.selection and {each["step"] for each in run.selection["candidates"]} == {10, 20, 30}


def test_a_choice_among_as_many_other_agents_is_made_again(chosen, tmp_path):
    """A study that lost an agent and got it back showed what was chosen beside the agent in between."""
    out = shutil.copytree(chosen[0], tmp_path / "study")
    first = [replace(job, data=str(out / "log")) for job in chosen[1][2:]]  # on all of the log
    between = [first[0], replace(first[1], name="runs/all/qr_dqn", agent="qr_dqn", label="qr_dqn")]
    perform_job(between[1], out)
    for jobs in (between, first):
        choose_policies(jobs, out, {"updates": 2})
        among = [read_selection(job.run_folder(out))["among"] for job in jobs]
        assert (
            among[0] == among[1] == sorted(read_selection(job.run_folder(out))["fingerprint"] for job in jobs)
        )


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("size", ["mini", "tiny"])
def test_the_papers_studies_of_discrete_actions_choose_policies(name, size):
    assert study_file.load(name, size).select is not None


@pytest.mark.slow
def test_the_study_of_rules_ends_with_the_regret_of_each(tmp_path):
    assert (
        main(["study", "run", "selection", "--scale", "tiny", "--out", str(tmp_path), "--workers", "1"]) == 0
    )
    with open(tmp_path / "results" / "selection.csv") as file:
        rows = list(csv.DictReader(file))
    rules = set(available()) - {"agreement"}  # each log has one seed here
    assert rules | {"last"} <= {row["rule"] for row in rows}
    assert rules <= {row["rule"] for row in rows if row["agent"] == ALL}
    assert {row["agent"] for row in rows} <= {"REM", "CQL", ALL}  # without those that never beat random play
    assert all(float(row["regret"]) >= 0 for row in rows)
