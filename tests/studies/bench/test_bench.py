"""The table of a machine: every row has a rate and a limit, peers are timed in turns, and files read back."""

import csv
import sys
from pathlib import Path

import pytest

from optimist.cli.main import main
from optimist.studies.bench import feeds, peers
from optimist.studies.bench.learners import learning, random_log
from optimist.studies.bench.measuring import Row, measured
from optimist.studies.bench.plan import PARTS, Plan, quick, whole
from optimist.studies.bench.play import collecting
from optimist.studies.bench.results import FIGURE, TABLE, line, rounded, sheet, write_figure, write_table
from optimist.studies.bench.timing import Gauge, Subject, Timing, best, middle, ratio

SHORT = Timing(rounds=1, seconds=0.001)
STAND_IN = """#!{python}
import json, sys
settings = json.loads(sys.argv[2])
if settings["form"] == "compiled":
    print(json.dumps({{"problem": "no compiler"}}), flush=True)
    sys.exit()
print(json.dumps({{"form": "stands in", "version": "1"}}), flush=True)
for _ in sys.stdin:
    print(json.dumps({{"updates": 7}}), flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def two_batches_at_once():
    """In place of 20: the rates of this file are only looked at for their sign."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeds, "STEPS", 2)
        yield


def test_the_progress_of_a_timed_run_is_not_shown(capfd):
    gauge = Gauge("nothing", lambda: 1)
    assert collecting("minatar_jax/breakout", gauge, gauge, steps=160).do() == 160
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """A table of every part, of the smallest size."""
    learners = (("dqn", "minatar", 4, 1), ("dqn", "minatar", 4, 2))
    return list(
        measured(Plan(learners, ("minatar_jax/breakout",), logged=600, played=160, timing=SHORT, parts=PARTS))
    )


def test_every_row_has_a_positive_rate_and_a_limit(rows):
    assert [row.subject.part for row in rows] == ["learner"] * 2 + ["data"] * 4 + ["play"] * 2
    they_have_rates_and_limits(rows)


@pytest.mark.slow
def test_so_have_the_other_networks():
    learners = (("td3", "control", 4, 2), ("rem", "nature", 4, 1))
    they_have_rates_and_limits(measured(Plan(learners, (), 0, 0, SHORT, ("learner",))))


def they_have_rates_and_limits(rows):
    for row in rows:
        assert row.rate > 0 and row.limit > 0 and row.limit_by
        assert f"{rounded(row.rate)} {row.subject.unit}" in line(row)


def test_the_files_read_back_as_the_table(rows, tmp_path):
    out = tmp_path / "deep" / "out"
    assert (write_table(rows, out), write_figure(rows, out)) == (out / TABLE, out / FIGURE)
    with open(out / TABLE, newline="") as file:
        found = list(csv.DictReader(file))
    assert [float(row["rate"]) for row in found] == [row.rate for row in rows]
    assert [float(row["limit"]) for row in found] == [row.limit for row in rows]
    assert [row["limited by"] for row in found] == [row.limit_by for row in rows]
    assert (out / FIGURE).read_bytes().startswith(b"\x89PNG")


def test_an_update_needs_the_arithmetic_of_its_network():
    """Counted by hand: two passes forwards, one backwards to the weights, and one to the hidden layer."""
    work = learning("dqn", random_log("minatar", 100), "minatar", batch=32, seeds=1)
    [(gauge, operations), (_, moved)] = work.needs
    convolution, dense = 2 * 8 * 8 * (3 * 3 * 4) * 16, 2 * (8 * 8 * 16 * 128 + 128 * 3)
    assert gauge.name == "arithmetic"
    assert operations == pytest.approx(32 * (3 * convolution + 4 * dense), rel=0.1)
    weights = 3 * 3 * 4 * 16 + 16 + 1024 * 128 + 128 + 128 * 3 + 3
    assert moved == pytest.approx(4 * 7 * weights, rel=0.01)  # weights and two moments both ways, and targets


@pytest.mark.parametrize(("rate", "text"), [(0.8412, "0.84"), (7.0, "7"), (12.3, "12"), (16_701.2, "16,701")])
def test_slow_rates_keep_two_digits(rate, text):
    assert rounded(rate) == text


def test_works_take_turns_and_the_first_call_is_not_timed():
    calls = []
    works = [lambda name=name: calls.append(name) or 1 for name in "abc"]
    rounds = Timing(rounds=2, seconds=1e-9).rates(works)
    assert calls == list("abc" * 3)
    assert [len(rates) for rates in rounds] == [3, 3]


def test_ratios_are_those_of_the_same_round():
    rounds = [[1.0, 1.0], [30.0, 10.0], [8.0, 4.0]]
    assert (middle(rounds, 0), best(rounds, 0), ratio(rounds, 0, 1)) == (8.0, 30.0, 2.0)


def test_peers_have_a_column_and_one_that_cannot_run_says_why(tmp_path):
    python = tmp_path / "python"
    python.write_text(STAND_IN.format(python=sys.executable))
    python.chmod(0o755)
    plan = Plan((("dqn", "minatar", 4, 1), ("qr_dqn", "minatar", 4, 1)), (), 0, 0, SHORT, ("learner",))
    known, unknown = measured(plan, python)
    assert known.times.keys() == {"eager", "tuned", "d3rlpy"} and min(known.times.values()) > 0
    assert known.forms["compiled"] == "no compiler" and known.forms["eager"] == "stands in (1)"
    assert unknown.times == {}
    table = sheet([known, unknown])
    assert table.heads[-3:] == ["x eager PyTorch", "x tuned PyTorch", "x d3rlpy"]
    assert table.rows[1][-2:] == [None, None]
    assert "compiled PyTorch: no compiler." in table.notes


def test_a_peer_trains_one_seed_of_an_agent_that_it_has():
    subject = Subject("learner", "td3", "control", 100, 1, "updates/s")
    assert peers.knows("d3rlpy", subject)
    assert not peers.knows("d3rlpy", subject._replace(name="rem"))
    assert not peers.knows("eager", subject._replace(seeds=5))
    assert not peers.knows("eager", subject._replace(part="data"))


def test_the_quick_rows_are_some_of_all_rows():
    assert set(quick().learners) < set(whole().learners)
    assert set(quick().games) <= set(whole().games)
    assert quick().timing.rounds * quick().timing.seconds < whole().timing.rounds * whole().timing.seconds


def test_the_command_prints_one_table_and_writes_it(tmp_path, capsys):
    words = ["bench", "--quick", "--only", "data", "--rounds", "1", "--seconds", "0.001"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "compressed" in text and "of limit" in text and str(tmp_path / TABLE) in text
    assert sorted(path.name for path in Path(tmp_path).iterdir()) == [TABLE, FIGURE]


def test_a_measurement_that_is_stopped_keeps_its_rows(rows, tmp_path, monkeypatch):
    def stopped(plan, beside):
        yield rows[0]
        raise KeyboardInterrupt

    monkeypatch.setattr("optimist.studies.bench.measuring.measured", stopped)
    assert main(["bench", "--quick", "--out", str(tmp_path)]) == 130
    assert len((tmp_path / TABLE).read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "leaner"], 'there is no part "leaner": did you mean "learner"?'),
        (["--rounds", "0"], "at least one round"),
        (["--seconds", "0"], "seconds above 0"),
    ],
)
def test_a_wrong_value_is_one_line(words, message, tmp_path, capsys):
    assert main(["bench", *words, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_python_of_the_peers_that_is_not_there_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(peers.PYTHON, str(tmp_path / "none"))
    assert main(["bench", "--peers", "--out", str(tmp_path / "out")]) == 2
    assert "there is no such file" in capsys.readouterr().err
