"""The demo ends with a page, a film and a table; called again it goes on where it stopped."""

import re
import signal
from contextlib import contextmanager

import pytest

from optimist.cli.main import main
from optimist.errors import UsageError
from optimist.studies.demo import AGENTS, Demo
from optimist.studies.scores.curves import scores

LITTLE = {"online_steps": 320, "offline_steps": 20, "evaluations": 2, "episodes": 2, "seeds": 2}
WORDS = [word for name, value in LITTLE.items() for word in (f"--{name.replace('_', '-')}", str(value))]


@contextmanager
def ctrl_c_at(path):
    """Ctrl-C a moment after this file has appeared."""

    def look(*_):
        if path.exists():
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGVTALRM, look)  # not SIGALRM, by which pytest ends a test that hangs
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.01, 0.01)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # A last signal may still be on its way, and would end the process by default.
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN if before is signal.SIG_DFL else before)


def test_interrupted_and_called_again_it_ends_with_a_page_a_film_and_a_table(tmp_path, capsys, monkeypatch):
    out = tmp_path / "demo"
    with ctrl_c_at(out / "dqn" / "metrics.jsonl"):
        assert main(["demo", "--out", str(out), *WORDS]) == 130
    assert "goes on from there" in capsys.readouterr().err
    assert (out / "data" / "agent" / "DONE").exists() and not (out / "report.html").exists()
    log = (out / "data" / "manifest.json").read_bytes()

    assert main(["demo", "--out", str(out), *WORDS]) == 0
    assert (out / "data" / "manifest.json").read_bytes() == log
    text, page = capsys.readouterr().out, (out / "report.html").read_text()
    assert "mean ± sd over seeds" in text
    assert all(label in text and label in page for label in AGENTS)
    assert "data:image/gif;base64," in page
    assert (out / "rem.gif").read_bytes()[:6] == b"GIF89a"
    for name in AGENTS.values():
        assert [(row.seed, row.evaluations) for row in scores(out / name)] == [(0, 2), (1, 2)]

    monkeypatch.chdir(out)
    by_hand = re.findall(r"optimist ((?:collect|train) [^<\n]+)", page)
    assert len(by_hand) == 4
    for line in by_hand:  # each finds its own folder, and agrees with every setting in it
        assert main(line.split()) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", ["online_steps", "offline_steps", "evaluations", "episodes", "seeds"])
def test_senseless_sizes_are_refused_before_anything_is_played(name):
    with pytest.raises(UsageError, match=f"{name} is 0"):
        Demo(**{**LITTLE, name: 0})
    with pytest.raises(UsageError, match="do not divide"):
        Demo(**{**LITTLE, "evaluations": 3})
