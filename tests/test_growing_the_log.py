"""Every block of docs/growing-the-log.md runs, in order, and the log grows as the page says."""

from pathlib import Path

import numpy as np

from optimist.data import Dataset
from optimist.data.verify import verify
from tutorial import perform


def test_every_block_of_the_page_runs_and_the_log_grows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (names,) = perform("growing-the-log.md", ["", "", "", "python"])
    assert names["sizes"] == [1200, 1600]
    assert names["policy"](np.zeros(4, np.float32)) in (0, 1)
    log, first = Dataset.open("log"), Dataset.open("more-0")
    assert len(log) == 1600 and verify(Path("log")) == []
    np.testing.assert_array_equal(log.timeline.action[400:800], first.timeline.action)  # the second part
