"""Every block of docs/choosing-a-policy.md runs, in order, and comes to what the page says."""

import re
from pathlib import Path

from optimist.choosing.estimators import available
from optimist.training.export.numpy_policy import NumpyPolicy
from optimist.training.storage.selected import read_selection
from tutorial import DOCS, perform

PAGE = DOCS / "choosing-a-policy.md"


def test_every_block_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (names,) = perform("choosing-a-policy.md", ["python", "", "", "", "python"])
    record = read_selection(Path("choice"))
    assert record is not None and len(record["candidates"]) == 12
    assert not any("episodes from which they learned" in note for note in record["notes"])
    first = record["candidates"][0]
    assert record["chosen"] == {name: first[name] for name in ("run", "step", "seed")}
    assert (names["chosen"].step, names["chosen"].seeds) == (first["step"], (first["seed"],))
    assert "held-out episodes: 1, which are too few" in names["choice"].answer
    assert NumpyPolicy("cart.npz")([0.0, 0.0, 0.0, 0.0]) in (0, 1)


def test_the_page_has_every_rule():
    rows = re.findall(r"^\| `(\w+)`", PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(available())
