"""A table is the same in a terminal, as Markdown, as CSV and as HTML, and trusts no text it is given."""

import csv
import io
import re

import pytest
from rich.console import Console

from optimist.studies.scores.curves import sheet, spread
from optimist.studies.sheet import (
    FOLDED,
    Cell,
    Sheet,
    as_csv,
    as_html,
    as_markdown,
    in_words,
    number,
    print_sheet,
)

SHEET = Sheet(
    "scores of two",
    ["agent", "game", "score", "gain"],
    [["REM", "Pong", Cell("1.04 [0.98, 1.10]", 1.0412345), 12], ["REM", "a|b", 0.25, None]],
    ["a note"],
)


def printed(sheet: Sheet, width: int = 80) -> list[str]:
    text = io.StringIO()
    print_sheet(sheet, Console(file=text, width=width, force_terminal=True, color_system=None))
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def test_a_terminal_gets_title_heads_rows_and_notes():
    lines = printed(SHEET)
    assert lines[0] == "scores of two" and lines[-1] == "a note"
    assert "agent game score gain" in lines
    assert "REM Pong 1.04 [0.98, 1.10] 12" in lines and "REM a|b 0.25" in lines


def test_a_number_is_never_broken_where_a_heading_can_be():
    wide = Sheet("", ["a heading of many words"] * 6, [[Cell("123.4% / 56", 1)] * 6])
    assert " ".join(["123.4% / 56"] * 6) in printed(wide, width=80)


def test_brackets_are_no_colours():
    assert "[red]x[/red]" in "\n".join(printed(Sheet("[bold]", ["a"], [["[red]x[/red]"]])))


def test_markdown_escapes_the_bar_and_begins_with_a_capital():
    assert as_markdown(SHEET).splitlines() == [
        "# Scores of two",
        "",
        "| agent | game | score | gain |",
        "| --- | --- | --- | --- |",
        "| REM | Pong | 1.04 [0.98, 1.10] | 12 |",
        "| REM | a\\|b | 0.25 |  |",
        "",
        "- a note",
    ]


def test_csv_has_every_digit_and_nothing_but_the_table():
    assert list(csv.reader(io.StringIO(as_csv(SHEET)))) == [
        ["agent", "game", "score", "gain"],
        ["REM", "Pong", "1.0412345", "12"],
        ["REM", "a|b", "0.25", ""],
    ]


def test_html_sorts_by_the_number_and_names_the_head_of_every_cell():
    page = as_html(SHEET, "mine")
    assert '<table class="sortable" id="mine">' in page and "<li>a note</li>" in page
    assert 'data-head="score" data-value="1.0412345">1.04 [0.98,&nbsp;1.10]</td>' in page
    assert re.findall(r'<td data-head="agent" class="([^"]*)">', page) == ["words", "words again"]


def test_html_folds_what_is_long():
    rows = [["x"]] * (FOLDED + 1)
    assert as_html(Sheet("t", ["a"], rows), "t").startswith('<details class="card"><summary>')
    assert "<details" not in as_html(Sheet("t", ["a"], rows[:-1]), "t")


def test_text_is_never_markup():
    attack = '"><script>x</script> [<b>]'
    page = as_html(Sheet(attack, [attack], [[attack]], [attack]), attack)
    assert "<script" not in page and "<b>" not in page


@pytest.mark.parametrize(
    ("value", "words"), [(1234.4, "1,234"), (9.13, "9.1"), (0.254, "0.25"), (-2.0, "-2.0"), (0, "0.0")]
)
def test_numbers_are_short(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (12345, "12,345"),
        (0.1, "0.1"),
        (71.2345, "71.23"),
        ([1, 2.5], "1, 2.5"),
        (True, "True"),
        ([59.43, 1124.0], "59.43; 1,124"),
        ({"mean": 71.2, "longest": 9000}, "mean 71.2; longest 9,000"),
    ],
)
def test_values_are_said_as_a_person_would(value, words):
    assert in_words(value) == words


def test_a_spread_keeps_the_decimals_of_its_mean():
    assert spread([8.526, 9.714]).text == "9.1 ± 0.8"
    assert spread([1164.7, 1304.3]).text == "1,234 ± 99"
    assert spread([9.12]).text == "9.1"


@pytest.mark.parametrize(("evaluations", "said"), [(1, None), (2, "mean of last 2"), (9, "mean of last 3")])
def test_a_mean_of_the_last_few_is_of_no_more_than_there_are(evaluations, said):
    curve = dict.fromkeys(range(evaluations), 1.0)
    heads = sheet({"REM": {0: curve, 1: curve}}, {"best policy": 3.0}).heads
    assert [head for head in heads if head.startswith("mean")] == ([said] if said else [])
