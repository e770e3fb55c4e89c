"""Every block of docs/choosing-a-policy.md runs, in order, and comes to what the page says."""

import re
import shlex
from pathlib import Path

from optimist.cli.main import main
from optimist.training.export.numpy_policy import NumpyPolicy
from optimist.training.selection.choice import RULES
from optimist.training.storage.selected import read_selection

PAGE = Path(__file__).parents[1] / "docs" / "choosing-a-policy.md"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert [kind for kind, _ in blocks] == ["python", "", "", "", "python"]
    names: dict = {}
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), names)
            continue
        for line in text.splitlines():
            program, *words = shlex.split(line)
            assert program == "optimist"
            assert main(words) == 0, capsys.readouterr().err
    record = read_selection(Path("choice"))
    assert record is not None and len(record["candidates"]) == 12
    assert not any("learned from the episodes" in note for note in record["notes"])
    mine = next(each for each in record["candidates"] if each["run"] == "runs/cql")
    assert (names["chosen"].step, names["chosen"].seeds) == (mine["step"], (mine["seed"],))
    assert NumpyPolicy("cart.npz")([0.0, 0.0, 0.0, 0.0]) in (0, 1)


def test_the_page_has_every_rule():
    rows = re.findall(r"^\| `(\w+)`", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == list(RULES)
