"""Every block of the tutorials runs, in order, as a reader would, and comes to what the page says."""

import html
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import optimist
from documented import ROOT, Block, blocks
from optimist.choosing.estimators import available
from optimist.cli.main import main
from optimist.data import Dataset
from optimist.data.verify import verify
from optimist.training.export.numpy_policy import NumpyPolicy
from optimist.training.storage.selected import read_selection

EXIT_CODE = re.compile(r"# exit code (\d+)")  # what the page says that a command ends with, if not 0


def perform(page: str, *, apart: bool = False) -> list[dict]:
    """Run the blocks of docs/`page`: Python, or commands. Returns the names that the Python blocks define:
    one dictionary, or one of each block if they stand `apart`."""
    names: list[dict] = []
    for block in page_of(page):
        assert block.kind in ("python", ""), block
        if block.kind == "":
            run_commands(block.text)
            continue
        if apart or not names:
            names.append({})
        exec(compile(block.text, str(block), "exec"), names[-1])
    return names


def page_of(name: str) -> list[Block]:
    return blocks(f"docs/{name}")


def run_commands(text: str) -> int:
    """Run each line, a command with its exit code; return how many there are."""
    lines = text.splitlines()
    for line in lines:
        program, *words = shlex.split(line, comments=True)
        said = EXIT_CODE.search(line)
        assert program == "optimist" and main(words) == (int(said[1]) if said else 0), line
    return len(lines)


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_your_own_log(tmp_path):
    names = perform("your-own-log.md", apart=True)
    _, shop, _, heater, _, _ = names
    assert shop["shown"] == [4711, 4711, 90210, 90210]
    assert NumpyPolicy("shop.npz")([22, 9, 0.0]) == 4711
    assert heater["inside"] == pytest.approx(17.9, abs=0.7)
    selection = json.loads((tmp_path / "runs/shop/selection.json").read_text())
    # A gain of about 30, with an interval of about 20 to 45, above today's 10.
    said = re.search(r"better than today's policy by ([\d.]+) \[([\d.]+), ([\d.]+)\]", selection["answer"])
    assert said, selection["answer"]
    assert [float(number) for number in said.groups()] == pytest.approx([31, 19, 45], abs=5)
    assert selection["today"]["mean"] == pytest.approx(10, abs=0.5)
    shop, heater, cart = (Dataset.open(name) for name in ("shop", "heater", "cart"))
    assert len(shop.episodes) == 700 and shop.episodes.terminal.all()
    assert shop.spec.action_names == (12, 815, 4711, 90210)
    assert shop.spec.frame_shape == (3,)  # without the dropped column
    assert heater.episodes.truncated.all() and heater.episodes.lengths.tolist() == [23] * 60
    assert len(cart) == 300 and cart.provenance["environment"] == "gym/CartPole-v1"
    rows = [json.loads(line) for line in Path("runs/shop/metrics.jsonl").read_text().splitlines()]
    assert all("held_out_loss_q" in row for row in rows)
    assert "Returns in the log's order" in html.unescape(Path("shop.html").read_text())


def test_choosing_a_policy():
    (names,) = perform("choosing-a-policy.md")
    record = read_selection(Path("choice"))
    assert record is not None and len(record["candidates"]) == 12
    assert not any("episodes from which they learned" in note for note in record["notes"])
    assert any("300 updates are fewer than" in note for note in record["notes"])
    first = record["candidates"][0]
    assert record["chosen"] == {name: first[name] for name in ("run", "step", "seed")}
    assert (names["chosen"].step, names["chosen"].seeds) == (first["step"], (first["seed"],))
    assert "held-out episodes: 1, which are too few" in names["choice"].answer
    assert NumpyPolicy("cart.npz")([0.0, 0.0, 0.0, 0.0]) in (0, 1)


def test_the_page_about_choosing_has_every_rule():
    text = (ROOT / "docs/choosing-a-policy.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) == sorted(available())


def test_growing_the_log():
    (names,) = perform("growing-the-log.md")
    assert names["sizes"] == [1200, 1600]
    assert names["policy"](np.zeros(4, np.float32)) in (0, 1)
    log, first = Dataset.open("log"), Dataset.open("more-0")
    assert len(log) == 1600 and verify(Path("log")) == []
    np.testing.assert_array_equal(log.timeline.action[400:800], first.timeline.action)  # the second part


def test_extending(tmp_path, monkeypatch):
    """A module with one of each kind, used by commands and a study."""
    (tmp_path / "lib").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "lib")
    texts = dict.fromkeys(("python", "toml", "", "text"), "")
    for block in page_of("extending.md"):
        texts[block.kind] += block.text
    (tmp_path / "lib" / "my_package.py").write_text(texts["python"])
    Path("keen.toml").write_text(texts["toml"])
    Path("log.rewards").write_text("1\n2\n3\n")
    try:
        assert run_commands(texts[""]) == 5
    finally:
        sys.modules.pop("my_package", None)
    assert optimist.open("imported").timeline.reward.tolist() == [2.0, 4.0, 6.0]
    assert Path("runs/keen/lines.txt").read_text().splitlines()[-1].startswith("20 0 ")
    assert "my_package:Squares" in Path("runs/keen/config.toml").read_text()
    page = Path("studies/keen/report.html").read_text()
    assert "Keen" in page and "Interquartile mean at the end" in page
    assert Path("studies/keen/results/all/LAST.png").exists()
