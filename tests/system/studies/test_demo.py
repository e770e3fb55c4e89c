"""The demo is a study of the catalogue: it ends with a study's page, and called again it goes on."""

import html
from dataclasses import replace

import pytest

from made_study import empty_drawings, run_here
from optimist.cli.main import main
from optimist.errors import UsageError
from optimist.studies import study_file
from optimist.studies.demo import Demo
from optimist.studies.engines import local
from optimist.studies.report import study_figures
from optimist.studies.scores.curves import curves
from optimist.studies.status import read_record

LITTLE = {
    "environment": "minatar/breakout",
    "online_steps": 1600,
    "offline_steps": 20,
    "evaluations": 2,
    "episodes": 2,
    "seeds": 2,
}
WORDS = [word for name, value in LITTLE.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def test_it_is_the_study_of_the_catalogue():
    assert Demo().study() == study_file.load("demo")


def test_it_needs_no_extra():
    """Our own games are part of the package; minatar (GPL) is not."""
    assert all(name.startswith("minatar_jax/") for name in study_file.load("demo").environments)


def test_it_ends_with_a_page_a_film_and_a_table_and_goes_on(tmp_path, monkeypatch, capsys):
    """Here two of its agents, with small networks, are trained in this process."""
    usual = study_file.load("demo")
    little = {"options": {"network": "mlp"}}
    agents = {label: {**usual.agents[label], **little} for label in ("DQN", "REM")}
    study = replace(usual, agents=agents, collect={**usual.collect, **little})
    monkeypatch.setattr(study_file, "load", lambda name: study)
    monkeypatch.setattr(local, "run", run_here)
    monkeypatch.setattr(study_figures, "drawings", empty_drawings)
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out), *WORDS]) == 0
    text, page = capsys.readouterr().out, html.unescape((out / "report.html").read_text())
    assert "mean ± sd over seeds" in text and "mean of last 2" in text and "three" not in text
    assert all(label in text and label in page for label in agents)
    assert "data:image/gif;base64," in page
    assert (out / "results" / "film.gif").read_bytes()[:6] == b"GIF89a"
    record = read_record(out)
    for job in (job for job in record.jobs if job.label):
        by_seed = curves(job.run_folder(out))
        assert {seed: len(curve) for seed, curve in by_seed.items()} == {0: 2, 1: 2}
    assert f"optimist demo --out {out} {' '.join(WORDS)}" in page
    times = {path: path.stat().st_mtime for path in out.rglob("DONE")}
    assert main(record.command.split()[1:]) == 0
    assert {path: path.stat().st_mtime for path in out.rglob("DONE")} == times
    assert "4 of 4 runs are done already" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["online_steps", "offline_steps", "evaluations", "episodes", "seeds"])
def test_senseless_sizes_are_refused_before_anything_is_played(name):
    with pytest.raises(UsageError, match=f"{name} is 0"):
        Demo(**{**LITTLE, name: 0})
    with pytest.raises(UsageError, match="do not divide"):
        Demo(**{**LITTLE, "evaluations": 3})
