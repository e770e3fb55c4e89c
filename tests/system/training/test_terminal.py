"""Progress of a loop; and Ctrl-C and SIGTERM are requests: the run saves itself and goes on later."""

import signal
import threading

import pytest

from little import begin, interrupted, lines, outcome, small_words, wait_for
from optimist.cli.main import main
from optimist.training.terminal import Bar, Interrupted, StopRequest, say


def test_signals_save_the_run_and_cost_no_bit(log, tmp_path):
    settings = ["--steps", 1000, "--evaluate-every", 40, "--episodes", 2, "--checkpoint-seconds", 1000]
    words = [*map(str, ["train", "rem", log, "--batch", 8, *settings, *small_words("rem")])]
    stopped = tmp_path / "stopped"
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        before = lines(stopped / "metrics.jsonl")
        with begin(*words, "--out", stopped) as child:
            wait_for(lambda before=before: lines(stopped / "metrics.jsonl") > before + 2, child)
            complaint = interrupted(child, number)
        assert child.returncode == code
        assert complaint.count("\n") == 1
        assert complaint.startswith("optimist: stopped at gradient step ") and "continues" in complaint
        newest = max((stopped / "checkpoints").iterdir()).name
        assert int(newest.split("-")[1]) == 40 * lines(stopped / "metrics.jsonl")
    assert main([*words, "--out", str(stopped)]) == 0
    assert main([*words, "--out", str(tmp_path / "straight")]) == 0
    assert outcome(stopped) == outcome(tmp_path / "straight")


@pytest.mark.parametrize("number", StopRequest.SIGNALS)
def test_the_first_signal_is_remembered_and_named_when_leaving(number):
    with StopRequest() as stop:
        stop.leave("step 1")
        signal.raise_signal(number)
        assert stop.received == number
        with pytest.raises(Interrupted, match="stopped at step 2, saved") as caught:
            stop.leave("step 2")
    assert caught.value.exit_code == 128 + number


@pytest.fixture
def at_the_keyboard():
    """A shell starts what runs in the background with Ctrl-C ignored; here somebody sits in front of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_second_ctrl_c_stops_at_once(at_the_keyboard):
    with StopRequest():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_signals_do_what_they_did_before():
    before = [signal.getsignal(number) for number in StopRequest.SIGNALS]
    with StopRequest():
        assert [signal.getsignal(number) for number in StopRequest.SIGNALS] != before
    assert [signal.getsignal(number) for number in StopRequest.SIGNALS] == before


def test_a_thread_that_hears_no_signals_trains_all_the_same():
    heard = []

    def work():
        with StopRequest() as stop:
            heard.append(stop.received)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard == [0]


def told(capsys, total: int, unit: str, *done: int) -> list[str]:
    with Bar("title", total, unit) as bar:
        for each in done:
            bar.update(each, "note")
    return capsys.readouterr().out.splitlines()


def test_the_last_line_is_printed_once(capsys):
    (line,) = told(capsys, 600, "step", 300, 600, 600, 600)
    assert line.startswith("title: 600/600 steps, ") and line.endswith("/s  note")


def test_lanes_that_pass_the_end_do_not_leave_less_than_nothing(capsys):
    (line,) = told(capsys, 600, "step", 608, 608)
    assert "608/608 steps" in line and "left" not in line


@pytest.mark.parametrize(("unit", "plural"), [("entry", "entries"), ("step", "steps"), ("update", "updates")])
def test_many_are_in_the_plural(unit, plural, capsys):
    (line,) = told(capsys, 42, unit, 42)
    assert f"42/42 {plural}," in line


def test_a_line_in_a_file_is_one_line_and_a_bracket_no_colour(capsys):
    line = f"runs/{'a' * 200} failed: no [bold] option"
    say(line)
    assert capsys.readouterr().err == f"{line}\n"


def test_what_came_in_one_piece_has_no_rate(capsys):
    with Bar("import", 42, "entry", done=42) as bar:
        bar.update(42)
    assert capsys.readouterr().out == "import: 42/42 entries  \n"


def test_nothing_is_foretold_before_the_first_step(capsys, monkeypatch):
    monkeypatch.setattr("optimist.training.terminal.PLAIN_SECONDS", -1)
    first, second = told(capsys, 600, "step", 0, 1)
    assert first == "title: 0/600 steps  note" and " s left  note" in second
