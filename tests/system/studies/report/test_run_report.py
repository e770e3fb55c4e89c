"""Without an environment a run shows its estimators: while it trains, at its end, and as a page."""

import html
import json
import shutil

import numpy as np
import pytest

from browser import Browser
from little import small_words, vectors
from optimist.cli.main import main
from optimist.studies.scores.curves import estimator_sheet
from optimist.training.loggers.jsonl import Jsonl
from optimist.training.measures import in_words
from optimist.training.storage.rows import curves_of, read_metrics
from optimist.training.storage.run_folder import Alarm, write_alarms

WORDS = ["--steps", "60", "--evaluate-every", "20", "--seeds", "0,1", "--hold-out", "0.2"]
WORDS += small_words("dqn")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A log that names no environment, and a run on it."""
    root = tmp_path_factory.mktemp("report")
    vectors().save(root / "log")
    return root


@pytest.fixture(scope="module")
def run(trained):
    words = ["train", "dqn", str(trained / "log"), "--out", str(trained / "run"), *WORDS]
    assert main(words) == 0
    return trained / "run"


def test_training_shows_the_estimators_and_what_to_do_next(run, trained, capsys):
    words = ["train", "dqn", str(trained / "log"), "--out", str(trained / "again"), *WORDS]
    assert main(words) == 0
    told = capsys.readouterr().out
    (progress,) = [line for line in told.splitlines() if "60/60 updates" in line]
    for name in ("held-out loss q", "value ratio", "agreement", "drift"):
        assert f"{name} " in progress and told.count(name) >= 2  # the progress, and the table
    again = trained / "again"
    closing = told.splitlines()[-3:]
    assert closing == [
        f"trained in {again}; its curves as a page: optimist report {again}",
        f"to choose a policy by the log: optimist select {again}",
        f"to use it elsewhere: optimist export {again} --to policy.onnx",
    ]


def test_the_table_has_the_first_and_the_last_value_of_each_estimator(run):
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    table = {row[0]: [cell.value for cell in row[1:]] for row in estimator_sheet(read_metrics(run)).rows}
    assert list(table) == ["held-out loss q", "value ratio", "agreement", "drift"]
    for name, words in (("held_out_loss_q", "held-out loss q"), ("agreement", "agreement")):
        first, last = ([row[name] for row in rows if row["step"] == step] for step in (20, 60))
        np.testing.assert_allclose(table[words], [np.mean(first), np.mean(last)])
    assert all(0 <= value <= 1 for value in table["agreement"])


def test_a_note_is_the_mean_over_the_seeds_that_have_the_figure():
    rows = [{"loss_q": 5.0, "value_ratio": 0.5, "agreement": 0.25}, {"agreement": 0.75}]
    assert in_words(rows) == "value ratio 0.5, agreement 50%"
    assert in_words([]) == ""


def test_curves_are_by_seed():
    rows = [{"step": s, "seed": seed, "x": s * seed} for s in (1, 2) for seed in (3, 4)] + [
        {"step": 3, "seed": 3}
    ]
    found = curves_of(rows, "x")
    assert {seed: curve.values.tolist() for seed, curve in found.items()} == {3: [3, 6], 4: [4, 8]}
    assert curves_of(rows, "y") == {}


def test_the_page_is_about_the_estimators_and_names_what_diverged(run, capsys):
    write_alarms(run, {1: Alarm(60, 20, 99.0, 10.0)})
    try:
        assert main(["report", str(run)]) == 0
    finally:
        write_alarms(run, {})
    assert f"wrote {run / 'report.html'}" in capsys.readouterr().out
    text = html.unescape((run / "report.html").read_text())
    assert "seed 1 diverged at step 60; its last healthy policy is of step 20 (--step healthy)" in text
    assert "<title>dqn on log" in text
    assert "no environment: the curves show how training goes" in text
    for title in ("Held-out loss q", "Value ratio", "Agreement", "Drift", "Estimate", "Loss q"):
        assert f"<h3>{title}</h3>" in text
    assert "<h3>Return</h3>" not in text and f"optimist select {run}" in text


@pytest.mark.parametrize("rises", [False, True])
def test_the_page_marks_the_step_from_which_the_held_out_loss_rose(run, tmp_path, capsys, rises):
    copy = shutil.copytree(run, tmp_path / "copy")
    for path in copy.glob("metrics.jsonl*"):
        path.unlink()
    for step in range(20, 61, 4):
        Jsonl(copy, (0,), 0).add(step, {"held_out_loss_q": 1 + abs(step - 40) / 10 if rises else 1.0}, 0)
    assert main(["report", str(copy)]) == 0
    said = "the held-out loss q fell from 2.6, and rose from step 40 on, from 1.2 to 2.8"
    assert (said in capsys.readouterr().out) == rises
    text = html.unescape((copy / "report.html").read_text())
    assert (said in text) == ("The dotted line is where it was lowest" in text) == rises
    assert ("it stayed about 1." in text) != rises


def test_a_figure_of_one_value_shows_its_number(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    for path in copy.glob("metrics.jsonl*"):
        path.unlink()
    Jsonl(copy).add(60, {"agreement": 0.25, "loss_q": 1.5}, 0)
    assert main(["report", str(copy)]) == 0
    text = (copy / "report.html").read_text()
    assert "seed 0: 25 at step 60" in text and "seed 0: 1.5 at step 60" in text


def test_the_page_fits_a_phone(run, tmp_path):
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    browser = Browser()
    browser.open(tmp_path / "page.html", width=390)
    try:
        assert browser.complaints == []
        assert browser.value("document.documentElement.scrollWidth") <= 390
        assert browser.value("document.querySelectorAll('.figures svg').length") == 6
    finally:
        browser.close()


def test_mistakes_are_one_line(run, tmp_path, capsys):
    for words, code, told in (
        ([str(tmp_path)], 4, "is not a run folder"),
        ([str(run), "--out", str(tmp_path)], 2, "is a folder: name a file"),
    ):
        assert main(["report", *words]) == code
        assert told in capsys.readouterr().err
