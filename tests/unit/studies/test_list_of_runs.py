"""study.json may come from a stranger: no run that it lists leads out of the study's folder."""

import json
import shlex
from dataclasses import replace

import pytest

from optimist.cli.main import main
from optimist.errors import RunError
from optimist.studies.job import Job
from optimist.studies.status import FILE, read_record, write_jobs
from optimist.studies.study_file import catalogue, load
from optimist.studies.work import performed
from optimist.training.loggers.wandb import FOLDER, Sent

LOG = Job("logs/game", "gym/CartPole-v1", "dqn", "adam", "small", (0,), settings={"steps": 10})
RUN = replace(LOG, name="runs/one", data=LOG.name, needs=(LOG.name,), label="DQN")


def forged(out, **changes) -> None:
    """A list of both runs, the second of which has these values."""
    write_jobs(out, "a study", [LOG, RUN])
    record = json.loads((out / FILE).read_text())
    record["jobs"][1] |= changes
    (out / FILE).write_text(json.dumps(record))


@pytest.mark.parametrize(
    "name", ["../victim", "runs/../../victim", "/tmp/victim", "", ".", "runs//one", "a\\..\\..\\victim"]
)
def test_a_run_that_leads_out_of_the_folder_is_refused(name, tmp_path, capsys):
    forged(tmp_path / "study", name=name, data="nowhere", needs=[])  # it would fail at once
    assert main(["study", "work", str(tmp_path / "study"), "--index", "1"]) == RunError.exit_code
    assert f'the run "{name}" leads out of its folder' in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [FILE]


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"name": 5}, "Expected `str`, got `int` - at `$.jobs[1].name`"),
        ({"settings": None}, "Expected `object`, got `null` - at `$.jobs[1].settings`"),
        ({"seeds": ["0"]}, "Expected `int`, got `str` - at `$.jobs[1].seeds[0]`"),
        ({"needs": ["logs/other"]}, "no run logs/other"),
        ({"view": {"save": 1.0}}, "no view save"),  # a method of datasets, and not a part of one
        ({"share": {"hold_out": 0.5}}, "no view hold_out"),
        ({"resolved": {"training": {"steps": "x"}}}, "a run lacks its resolved training"),
        ({"resolved": None}, "a run lacks its resolved training"),
    ],
)
def test_a_value_that_no_study_writes_is_one_line(changes, phrase, tmp_path, capsys):
    forged(tmp_path, **changes)
    assert main(["study", "status", str(tmp_path)]) == RunError.exit_code
    complaint = capsys.readouterr().err
    assert "study.json is damaged" in complaint and phrase in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize("more", [[], ["--scale", "tiny"], ["--no-select"]])
def test_the_command_of_a_study_can_be_copied_and_has_only_what_was_given(more, tmp_path, capsys):
    scale, selects = (more, []) if "--scale" in more else ([], more)
    out = tmp_path / "my study"
    line = ["study", "run", "selection", *scale, "--out", str(out), *selects]
    assert main([*line, "--prepare"]) == 0
    record = read_record(out)
    assert shlex.split(record.command) == ["optimist", *line] and record.selects == (not selects)
    assert f"optimist study work '{out}' --index 0 to " in capsys.readouterr().out


@pytest.mark.parametrize("name", catalogue())
def test_what_a_study_writes_is_read_back(name, tmp_path):
    jobs = load(name, "tiny").jobs()
    write_jobs(tmp_path, "a study", jobs)
    assert [job.unresolved for job in read_record(tmp_path).jobs] == jobs


def test_the_output_of_a_run_is_not_written_through_a_link(tmp_path):
    (tmp_path / "victim").write_text("mine")
    log = tmp_path / "study" / RUN.name / "log.txt"
    log.parent.mkdir(parents=True)
    log.symlink_to(tmp_path / "victim")
    assert performed(RUN, tmp_path / "study", 0) == f"{log} is a link, which a run does not follow: remove it"
    assert (tmp_path / "victim").read_text() == "mine"


def test_nor_is_what_a_service_was_told(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "wandb.json.partial").symlink_to(tmp_path / "victim")
    Sent(tmp_path).note(1, {"loss": 0.5}, seed=0)
    assert (tmp_path / "victim").read_text() == "mine"
    assert Sent(tmp_path).news(1, {"loss": 0.5}, seed=0) == {}
