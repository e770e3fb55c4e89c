"""Every block of docs/extending.md runs: a module with one of each kind, used by commands and a study."""

import sys

import optimist
from optimist.cli.main import main
from tutorial import blocks, words_of


def test_every_class_of_the_page_is_used_by_its_commands(tmp_path, monkeypatch, capsys):
    (tmp_path / "lib").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.chdir(tmp_path)
    written = blocks("extending.md")
    module = "".join(text for kind, text in written if kind == "python")
    (tmp_path / "lib" / "my_package.py").write_text(module)
    (tmp_path / "keen.toml").write_text("".join(text for kind, text in written if kind == "toml"))
    (tmp_path / "log.rewards").write_text("1\n2\n3\n")
    try:
        commands = [line for kind, text in written if not kind for line in text.splitlines()]
        assert len(commands) == 5
        for line in commands:
            assert main(words_of(line)) == 0, line
    finally:
        sys.modules.pop("my_package", None)
    assert optimist.open("imported").timeline.reward.tolist() == [2.0, 4.0, 6.0]
    assert (tmp_path / "runs/keen/lines.txt").read_text().splitlines()[-1].startswith("20 0 ")
    assert "my_package:Squares" in (tmp_path / "runs/keen/config.toml").read_text()
    page = (tmp_path / "studies/keen/report.html").read_text()
    assert "Keen" in page and "Interquartile mean at the end" in page
    assert (tmp_path / "studies/keen/results/all/LAST.png").exists()
