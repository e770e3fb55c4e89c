"""Every block of docs/your-own-log.md runs, in order, and comes to what the page says."""

import html
import json
import re
from pathlib import Path

import pytest

from optimist.data import Dataset
from optimist.training.export.numpy_policy import NumpyPolicy
from tutorial import perform


def test_every_block_of_the_tutorial_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = [*["python", "", "", "", "", "python", ""], *["python", "", "python"], *["python", "", "python"]]
    names = perform("your-own-log.md", kinds, apart=True)
    _, shop, _, heater, _, _ = names
    assert shop["shown"] == [4711, 4711, 90210, 90210]
    assert NumpyPolicy("shop.npz")([22, 9, 0.0]) == 4711
    check_choice(json.loads((tmp_path / "runs/shop/selection.json").read_text()))
    assert heater["inside"] == pytest.approx(17.9, abs=0.7)
    check_logs(tmp_path)


def check_choice(selection: dict) -> None:
    """A gain of about 30, with an interval of about 20 to 45, above today's 10."""
    said = re.search(r"better than today's policy by ([\d.]+) \[([\d.]+), ([\d.]+)\]", selection["answer"])
    assert said, selection["answer"]
    assert [float(number) for number in said.groups()] == pytest.approx([31, 19, 45], abs=5)
    assert selection["today"]["mean"] == pytest.approx(10, abs=0.5)


def check_logs(folder: Path) -> None:
    shop, heater, cart = (Dataset.open(folder / name) for name in ("shop", "heater", "cart"))
    assert len(shop.episodes) == 700 and shop.episodes.terminal.all()
    assert shop.spec.action_names == (12, 815, 4711, 90210)
    assert shop.spec.frame_shape == (3,)  # without the dropped column
    assert heater.episodes.truncated.all() and heater.episodes.lengths.tolist() == [23] * 60
    assert len(cart) == 300 and cart.provenance["environment"] == "gym/CartPole-v1"
    rows = [json.loads(line) for line in (folder / "runs/shop/metrics.jsonl").read_text().splitlines()]
    assert all("held_out_loss_q" in row for row in rows)
    page = (folder / "shop.html").read_text()
    assert "Returns in the log's order" in html.unescape(page)
