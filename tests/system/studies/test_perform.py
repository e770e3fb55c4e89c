"""What a study shows is made of its runs as they are now."""

import shutil
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from little import random_play
from made_study import AGENTS, GAMES, SPEC, empty_drawings, jobs, write_study
from optimist.data import Dataset, Recorder, Spec
from optimist.errors import RunError, UsageError
from optimist.studies import perform, study_file
from optimist.studies.job import Job
from optimist.studies.report import study_figures
from optimist.studies.report.study_report import FILM
from optimist.training import run


@pytest.fixture
def filmed(monkeypatch):
    """The runs that were filmed, in order; a film takes no time."""
    runs = []

    def load_run(folder):
        runs.append(folder.name)
        shade = np.uint8(len(runs))
        return SimpleNamespace(pictures=lambda frames: [np.full((8, 8, 3), shade)])

    monkeypatch.setattr(run, "load_run", load_run)
    return runs


def test_a_film_of_an_earlier_study_does_not_stay(filmed, tmp_path):
    study = study_file.load("demo", "tiny")
    labels = list(study.agents)[:2]
    films = []
    for label in (*labels, labels[0]):
        again = replace(study, film=label)
        perform.film(again, again.jobs(), tmp_path)
        films.append((tmp_path / FILM).read_bytes())
    assert filmed[0] == filmed[2] != filmed[1] and len(set(films)) == 3
    perform.film(replace(study, film=""), study.jobs(), tmp_path)
    assert not (tmp_path / FILM).exists()


def test_a_game_without_scores_is_told_of_before_any_run(tmp_path):
    """The report found it out, after all runs."""
    (tmp_path / "mine.csv").write_text("game,random,dqn\nbreakout,0,1\n")
    demo = study_file.load("demo", "tiny")
    study = replace(demo, environments=("minatar_jax/freeway",), normaliser=str(tmp_path / "mine.csv"))
    with pytest.raises(UsageError, match='mine.csv has no DQN score of "minatar_jax/freeway"'):
        perform.prepare(study, study.jobs(), tmp_path / "study", command="")
    assert not (tmp_path / "study").exists()
    known = replace(study, environments=("minatar_jax/breakout",))
    perform.prepare(known, known.jobs(), tmp_path / "study", command="")


def test_logs_that_were_played_with_other_options_are_named_once(tmp_path, caplog):
    """Only log.txt of each run said so."""
    spec = Spec((10, 10, 4), "bool", actions=3)
    played = {"environment": "minatar_jax/breakout?sticky_actions=0.0"}
    with Recorder(tmp_path / "log", spec, lanes=1, provenance=played) as recorder:
        for step in random_play(spec, rows=4, lanes=1):
            recorder.add(*step)
    study = replace(study_file.load("demo", "tiny"), collect=None, data=str(tmp_path / "log"))
    perform.prepare(study, study.jobs(), tmp_path / "study", command="")
    (line,) = [each for each in caplog.messages if "options" in each]
    assert line == (
        "the data is from minatar_jax/breakout?sticky_actions=0.0; it is evaluated in minatar_jax/breakout, "
        "with other options"
    )


def test_a_log_that_grew_while_its_study_ran_is_named_at_the_end(tmp_path, monkeypatch):
    """The study said that all runs are done, and its page lacked those on the shorter log."""
    grid = {"agents": AGENTS[:2], "games": GAMES[:1]}
    out, every = write_study(tmp_path / "study", **grid), jobs(**grid)
    log, run = out / every[0].name, every[-1]
    with (run.run_folder(out) / "config.toml").open("a") as config:
        config.write(f'[dataset]\nrecording = "{Dataset.open(log).fingerprint}"\npart = "whole"\n')

    def record_more(jobs, out, options):
        shutil.copytree(run.run_folder(out), more.run_folder(out))  # it is performed, and then the log grows
        with Recorder(log, SPEC, lanes=1) as recorder:
            for step in random_play(SPEC, rows=4, lanes=1):
                recorder.add(*step)

    study = replace(study_file.load("demo", "tiny"), film="", select=None)
    engine, more = SimpleNamespace(run=record_more), replace(every[-1], name="runs/more")
    said = f"2 of 5 runs .* {run.name} has dataset.recording: .* it has grown since.* --restart"
    with pytest.raises(RunError, match=said):
        perform.perform_study(study, [*every, more], out, engine, None, command="")


def test_what_the_folder_of_a_job_holds_is_asked_before_the_runs_and_after(tmp_path, monkeypatch):
    """It was asked thirteen times on the way through a study."""
    grid = {"agents": AGENTS[:2], "games": GAMES[:1]}
    out, every, asked = write_study(tmp_path / "study", **grid), jobs(**grid), Counter()
    standing = Job.standing
    monkeypatch.setattr(Job, "standing", lambda job, out: asked.update([job.name]) or standing(job, out))
    monkeypatch.setattr(study_figures, "drawings", empty_drawings)
    study = replace(study_file.load("demo", "tiny"), film="", select=None)
    perform.perform_study(study, every, out, SimpleNamespace(), None, command="")
    assert asked == {job.name: 2 for job in every}
