"""`optimist doctor` says what is wrong and how to mend it, one line each; its exit code is the problem's."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from little import played
from made_study import AGENTS, GAMES, write_study
from optimist.cli.main import main
from optimist.errors import StorageError
from optimist.studies import diagnosis, status
from optimist.training.storage.run_folder import Alarm, write_alarms

HOLD = """
import filelock, sys
with filelock.FileLock("run/.lock"):
    print("held", flush=True)
    sys.stdin.read()
"""
TRAINING = "--network.torso linear --columns 4 --seeds 0,1 --evaluate-every 20 --episodes 2 --steps 40"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dataset, a run and a study."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        played(Path("data"), game="gym/CartPole-v1", rows=80)
        assert main(["train", "rem", "data", *TRAINING.split(), "--out", "run"]) == 0
        write_study(Path("study"), agents=AGENTS[:1], games=GAMES[:1])
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A copy of them to damage."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy, symlinks=True)
    monkeypatch.chdir(copy)
    return copy


def diagnosed(capsys, *words: str) -> tuple[int, list[str], list[str]]:
    """The exit code, the lines about problems, and the other lines."""
    code = main(["doctor", *words])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    lines = said.out.splitlines()
    assert [line for line in lines if not line.startswith(("ok    ", "note  ", "wrong "))] == []
    wrong = [line for line in lines if line.startswith("wrong")]
    assert len(said.err.splitlines()) == bool(wrong)
    return code, wrong, [line for line in lines if line not in wrong]


def test_a_healthy_machine_and_healthy_folders(folder, capsys):
    code, wrong, lines = diagnosed(capsys, "data", "run", "study")
    assert (code, wrong) == (0, [])
    text = "\n".join(lines)
    assert "data is a dataset; every byte is as it was written" in text
    assert "run is a finished run of 40 steps" in text
    assert "is the study" in text
    assert f"optimist-rl {importlib.metadata.version('optimist-rl')}" in text


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def first(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


@pytest.mark.parametrize(
    ("name", "spoil", "code", "words"),
    [
        ("data", lambda f: damage(first(f, "steps-*.arrow")), 3, ["steps-", "restore it from a copy"]),
        ("data", lambda f: (f / "manifest.json").unlink(), 3, ["manifest.json"]),
        ("run", lambda f: damage(first(f, "checkpoints/*")), 4, ["is damaged", "from an older one"]),
        ("run", lambda f: damage(f / "metrics.jsonl"), 4, ["metrics.jsonl"]),
        ("run", lambda f: (f / "config.toml").write_text("="), 4, ["cannot be read", "--restart"]),
        ("run", lambda f: (f / "alarms.json").write_text("{"), 4, ["alarms.json is damaged"]),
        ("study", lambda f: (f / "study.json").write_text("{"), 4, ["study.json is damaged"]),
        ("elsewhere", lambda f: None, 2, ["elsewhere is not a folder"]),
        (".", lambda f: None, 2, ["neither a dataset, nor a run, nor a study", "data import"]),
    ],
)
def test_damage_is_named_with_its_remedy(folder, capsys, name, spoil, code, words):
    spoil(folder / name)
    found, wrong, _ = diagnosed(capsys, name)
    assert found == code
    assert [word for word in words if word not in wrong[0]] == []


def test_a_failed_run_of_a_study_is_named(folder, capsys):
    jobs = status.read_record(folder / "study").jobs
    (jobs[0].run_folder(folder / "study") / "DONE").unlink()
    status.note_failure(jobs[0], folder / "study", "Traceback\nthe disk was full")
    code, wrong, _ = diagnosed(capsys, "study")
    assert code == 4
    name = jobs[0].name
    assert wrong == [f"wrong {name} failed (the disk was full): the same command tries it again"]


def test_of_many_failed_runs_five_are_named_and_the_others_counted(folder, capsys):
    study = status.read_record(folder / "study")
    title, (first_job, *_) = study.title, study.jobs
    jobs = [replace(first_job, name=f"runs/{number}") for number in range(7)]
    status.write_jobs(folder / "study", title, jobs)
    for job in jobs:
        status.note_failure(job, folder / "study", "the disk was full")
    code, wrong, _ = diagnosed(capsys, "study")
    assert code == 4 and len(wrong) == 6
    assert wrong[-1] == "wrong 2 more runs: optimist study status study lists them"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "DONE").unlink(), "a run at 40 of 40 steps: the same command continues it"),
        (lambda f: (f / ".holder").write_text("process 1 on moon"), "1 on moon ended without closing"),
        (lambda f: (f / ".holder").write_text("process 1\non moon"), "1 on moon ended without closing"),
        (lambda f: write_alarms(f, {1: Alarm(20, 0, None, 1.0)}), "seed 1 at step 20: --step healthy"),
        (lambda f: (f / "versions.json").unlink(), "versions.json is missing"),
        (lambda f: (f / "versions.json").write_text('{"jax": "0.0.1"}'), "it was made with jax 0.0.1"),
    ],
)
def test_what_needs_no_mending_is_a_note(folder, capsys, change, words):
    change(folder / "run")
    code, wrong, lines = diagnosed(capsys, "run")
    assert (code, wrong) == (0, [])
    assert [line for line in lines if line.startswith("note") and words in line] != []


def test_data_that_was_in_memory_is_not_a_missing_folder(folder, capsys):
    file = folder / "run" / "config.toml"
    saved = file.read_text("utf-8")
    for path, missing in (("gone", True), ("in memory", False)):
        file.write_text(re.sub("^path = .*", f'path = "{path}"', saved, flags=re.MULTILINE), "utf-8")
        _, wrong, lines = diagnosed(capsys, "run")
        assert wrong == [] and any("is missing" in line for line in lines) is missing


@pytest.mark.parametrize("forged", ["a folder", "a link"])
def test_a_holder_that_is_no_file_is_not_read(folder, capsys, forged):
    if forged == "a folder":
        (folder / "run/.holder").mkdir()
    else:
        (folder / "secret").write_text("a secret")
        (folder / "run/.holder").symlink_to(folder / "secret")
    code, wrong, lines = diagnosed(capsys, "run")
    assert (code, wrong) == (0, [])
    assert not any("secret" in line for line in lines)


def test_a_run_in_use_names_its_process(folder, capsys):
    child = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline()
        (folder / "run/.holder").write_text(f"process {child.pid}")
        code, _, lines = diagnosed(capsys, "run")
        assert code == 0
        assert f"note  run is in use by process {child.pid}" in lines
    finally:
        child.communicate(b"")


def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path):
    if os.geteuid() == 0:  # root may write anywhere but here
        tmp_path = Path("/proc/self")
    else:
        tmp_path.chmod(0o500)
    (finding,) = diagnosis.disk(tmp_path)
    assert finding.problem is StorageError
    assert "choose another folder" in finding.text


@pytest.mark.parametrize(
    ("requirement", "complaint"),
    [
        ("jax>=0.4", ""),
        ("jax<99,>=0.4", ""),
        ("jax>=99.1", " is not >=99.1"),
        ("no-such-package>=1", "no-such-package is not installed"),
        ("jax[cuda12]>=0.4", "jax-cuda12"),
    ],
)
def test_requirements_are_compared_with_what_is_installed(requirement, complaint):
    found = diagnosis.unmet(Requirement(requirement))
    assert complaint in found if complaint else found == ""
