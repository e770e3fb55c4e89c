"""Ctrl-C and SIGTERM are requests: the run saves itself and goes on later as if nothing had been."""

import signal
import threading

import pytest

from little import begin, interrupted, lines, outcome, small_words, wait_for
from optimist.cli.main import main
from optimist.training.terminal import Interrupted, StopRequest


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
