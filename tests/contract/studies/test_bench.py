"""The table of a machine: every row has a rate, rows take turns, and the file reads back."""

import csv

import pytest

from optimist.cli.main import main
from optimist.studies import bench
from optimist.studies.bench import Timing, collecting, measured, rounded


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(bench, "NETWORKS", {"minatar": (*bench.NETWORKS["minatar"][:3], 100)})
    monkeypatch.setattr(bench, "QUICK", (("dqn", "minatar", 4, 1), ("dqn", "minatar", 4, 2)))
    monkeypatch.setattr(bench, "STEPS", {"minatar": (2, 2)})
    monkeypatch.setattr(bench, "GAMES", {"minatar_jax/breakout": ("", "minatar", 160)})


def test_the_command_prints_one_table_and_writes_it(tmp_path, capsys):
    out = tmp_path / "bench.csv"
    assert main(["bench", "--quick", "--rounds", "1", "--seconds", "0.001", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    with open(out, newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["what"] for row in found] == [
        *("dqn", "dqn", "evaluation, minatar_jax/breakout", "collection, minatar_jax/breakout"),
    ]
    for row in found:
        assert float(row["rate"]) > 0
        assert f"{rounded(float(row['rate']))} {row['unit']}" in text


def test_a_measurement_that_is_stopped_keeps_its_rows(tmp_path, monkeypatch):
    def stopped(quick, timing):
        yield bench.Subject("dqn", "minatar", 4, 1, "updates/s"), 7.0
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "measured", stopped)
    assert main(["bench", "--out", str(tmp_path / "bench.csv")]) == 130
    assert len((tmp_path / "bench.csv").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--rounds", "0"], "at least one round"), (["--seconds", "0"], "seconds above 0")],
)
def test_a_wrong_value_is_one_line(words, message, tmp_path, capsys):
    assert main(["bench", *words, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_progress_of_a_timed_run_is_not_shown(capfd):
    _, collect = collecting("minatar_jax/breakout", steps=160)
    assert collect() == 160
    assert capfd.readouterr() == ("", "")


def test_every_network_has_rows():
    rows = set(bench.WHOLE)
    assert {network for _, network, _, _ in rows} == {"minatar", "nature", "control"}


@pytest.mark.slow
def test_the_other_networks_have_rates(monkeypatch):
    monkeypatch.undo()
    short = [row for row in bench.QUICK if row[1] != "minatar"]
    monkeypatch.setattr(bench, "QUICK", short)
    assert all(rate > 0 for _, rate in measured(True, Timing(1, 0.001)))


@pytest.mark.parametrize(("rate", "text"), [(0.8412, "0.84"), (7.0, "7"), (12.3, "12"), (16_701.2, "16,701")])
def test_slow_rates_keep_two_digits(rate, text):
    assert rounded(rate) == text


def test_works_take_turns_and_the_first_call_is_not_timed():
    calls = []
    works = [lambda name=name: calls.append(name) or 1 for name in "abc"]
    rounds = Timing(rounds=2, seconds=1e-9).rates(works)
    assert calls == list("abc" * 3)
    assert [len(rates) for rates in rounds] == [3, 3]
