"""What a person reads while waiting, in a file: few lines, each of them true."""

import pytest

from optimist.training.terminal import Bar, say


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
