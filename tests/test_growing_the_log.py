"""Every block of docs/growing-the-log.md runs, in order, and the log grows as the page says."""

import re
import shlex
from pathlib import Path

import numpy as np

from optimist.cli.main import main
from optimist.data import Dataset
from optimist.data.verify import verify

PAGE = Path(__file__).parents[1] / "docs" / "growing-the-log.md"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def test_every_block_of_the_page_runs_and_the_log_grows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert [kind for kind, _ in blocks] == ["", "", "", "python"]
    names: dict = {}
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), names)
            continue
        for line in text.splitlines():
            program, *words = shlex.split(line)
            assert program == "optimist"
            assert main(words) == 0, capsys.readouterr().err
    assert names["sizes"] == [1200, 1600]
    assert names["policy"](np.zeros(4, np.float32)) in (0, 1)
    log, first = Dataset.open("log"), Dataset.open("more-0")
    assert len(log) == 1600 and verify(Path("log")) == []
    np.testing.assert_array_equal(log.timeline.action[400:800], first.timeline.action)  # the second part
