"""Words on a line: seeds, numbers, and what is read before the options are known."""

import argparse
from pathlib import Path

import pytest

from optimist.cli.options import Parser, arguments_in, seeds, value_in, whole_number
from optimist.errors import UsageError, closest, command_line


@pytest.mark.parametrize("text", ["9007199254740993", "123456789012345678901"])
def test_large_whole_numbers_keep_every_digit(text):
    assert whole_number(text) == int(text)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0", (0,)), ("0,1,2", (0, 1, 2)), ("3-6", (3, 4, 5, 6)), ("7-7", (7,)), ("5,2", (5, 2))],
)
def test_seeds_are_listed_or_given_as_a_range(text, numbers):
    assert seeds(text) == numbers


@pytest.mark.parametrize("text", ["", "a", "1,", "1,b", "-1", "1-", "1-2-3", "1.5", "0:3"])
def test_other_seeds_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a list of seeds"):
        seeds(text)


def test_a_range_that_counts_down_has_no_seeds():
    with pytest.raises(argparse.ArgumentTypeError, match='"4-0" counts down: write 0-4'):
        seeds("4-0")


@pytest.mark.parametrize(
    "words",
    [
        "rem log",
        "--count 3 rem log",
        "--count=3 rem log --restart",
        "--restart rem --count 3 log",
        "rem log -h",
        "--no-select rem log",
        "--low -3 rem --high -1,-2 log",
    ],
)
def test_arguments_are_told_from_options_and_their_values(words):
    assert arguments_in(words.split()) == ["rem", "log"]


@pytest.mark.parametrize("words", ["rem --preset online", "--preset=online rem", "--preset online"])
def test_a_value_is_found_before_the_options_are_known(words):
    assert value_in(words.split(), "--preset") == "online"
    assert value_in(words.split(), "--recipe") is None


def test_what_is_missing_is_asked_for_by_its_own_line():
    parser = Parser("optimist test")
    parser.demand("data", "name a folder", metavar="DATA")
    parser.demand("--out", "say where: --out FOLDER")
    for words, line in (([], "name a folder"), (["here"], "say where: --out FOLDER")):
        with pytest.raises(UsageError) as caught:
            parser.parse_args(words)
        assert str(caught.value) == line
    assert parser.parse_args(["--out", "there", "here"]).data == "here"


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("--lr", ["--optimizer.learning-rate", "--last"], "--optimizer.learning-rate"),
        ("--eval-every", ["--evaluate-every", "--epsilon"], "--evaluate-every"),
        ("--batch-size", ["--batch", "--steps"], "--batch"),
        ("--epslion", ["--optimizer.epsilon", "--epsilon"], "--epsilon"),
        ("bc", ["bcq", "behaviour_cloning"], "behaviour_cloning"),
        ("rme", ["rem", "dqn"], "rem"),
        ("cql", ["bcq", "dqn", "c51"], None),
        ("iql", ["bcq", "dqn", "rem"], None),
        ("zzzz", ["bcq"], None),
        ("stepz", ["steps", "step"], "steps"),
        ("x", [], None),
    ],
)
def test_a_word_is_suggested_only_where_it_is_like_the_one_that_was_written(word, known, meant):
    assert closest(word, known) == meant


def test_a_command_is_copied_as_it_is():
    assert (
        command_line("report", Path("runs/my run"), "--index", 0) == "optimist report 'runs/my run' --index 0"
    )
