"""A command is made from a signature: its arguments and options, and their values in the words of a line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from optimist.cli.words import CommandLine, call, seeds, setting_words, settings_of, whole_number
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
    with pytest.raises(UsageError, match="is not a list of seeds"):
        seeds(text)


def test_a_range_that_counts_down_has_no_seeds():
    with pytest.raises(UsageError, match='"4-0" counts down: write 0-4'):
        seeds("4-0")


@dataclass(frozen=True)
class Half:
    """a half of it."""

    first: Annotated[int | None, "only the first steps"] = None


def command(
    agent: Annotated["Agent | str", "an agent"],  # noqa: F821
    data: Annotated[Path, "a folder; made before", "DATA"],
    half: Half,
    *,
    out: Annotated[Path, "where to write"],
    count: Annotated[int, "how many"] = 3,
    rate: Annotated[float | None, "how fast [as before]"] = None,
    name: Annotated[str | int, "a name or a number"] = "last",
    seeds: Annotated["Iterable[int]", "of each run", "0,1,2"] = (0,),  # noqa: F821
    allow: Annotated["Iterable[str]", "a module", "module"] = (),  # noqa: F821
    start: Annotated[Path | None, "go on from it", "--from RUN"] = None,
    no_select: Annotated[bool, "choose none"] = False,
    python_only: object = None,
) -> None:
    """Do it. It may take long.

    This is about Python."""
    CALLS.append(locals())


CALLS: list[dict] = []


def line(words: str) -> CommandLine:
    return CommandLine("test", command, words.split())


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("rem log --out o", {}),
        ("--count 5 rem log --out o", {"count": 5}),
        ("--count=5 rem log --out=o", {"count": 5}),
        ("--no-select rem --out o log", {"no_select": True}),
        ("rem --rate -3 log --out o", {"rate": -3.0}),
        ("rem log --out o --name 7 --seeds 3-5", {"name": "7", "seeds": (3, 4, 5)}),
        ("rem log --out o --allow a --allow b", {"allow": ["a", "b"]}),
        ("rem log --out o --from there", {"start": Path("there")}),
        ("rem log --out o --first 4", {"half": {"first": 4}}),
    ],
)
def test_words_become_the_arguments_of_the_function(words, values):
    assert line(words).values() == {"agent": "rem", "data": Path("log"), "out": Path("o"), **values}


def test_a_group_of_options_becomes_its_record():
    call(command, line("rem log --out o --first 4").values())
    assert CALLS[-1]["half"] == Half(4) and CALLS[-1]["count"] == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "name an agent"),
        ("rem", "name a folder"),
        ("rem log", "name where to write: --out path"),
        ("rem log more --out o", 'optimist test has no argument "more": see optimist test --help'),
        ("rem log --cuont 3", 'optimist test has no option "--cuont": did you mean "--count"?'),
        ("rem log --coun 3", 'optimist test has no option "--coun": did you mean "--count"?'),
        ("rem log --python-only 3", 'optimist test has no option "--python-only": known: '),
        ("rem log --count --rate 3", "--count needs a value: --count int; see optimist test --help"),
        ("rem log --count", "--count needs a value: --count int; see optimist test --help"),
        ("rem log --no-select=yes", "--no-select takes no value; see optimist test --help"),
        ("rem log --out=", "--out: it is empty: name a path"),
        ("rem log --count 1.5", '--count: "1.5" is not a whole number'),
    ],
)
def test_other_words_are_refused_in_one_line(words, complaint):
    with pytest.raises(UsageError) as caught:
        line(words).values()
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(
    "words", ["rem --new 1 log", "--new=1 rem log", "--new -1,-2 rem log", "--no-select rem --new a log -h"]
)
def test_what_options_there_are_may_depend_on_the_arguments(words):
    """An option that is not known yet has a value."""
    assert line(words).arguments() == ["rem", "log"]
    assert line(words).value("--new") is not None and line(words).value("--rate") is None


def test_help_has_every_word_with_its_type_and_default():
    text = " ".join(line("").help().split())
    assert text.startswith(
        "usage: optimist test AGENT DATA --out path [options] Do it. It may take long. arg"
    )
    for shown in (
        "DATA a folder; made before",
        "--count int how many [3]",
        "--rate number how fast [as before]",
        "--seeds 0,1,2 of each run [0]",
        "--no-select choose none",
        "a half of it: --first int|none only the first steps [none]",
    ):
        assert shown in text
    assert "about Python" not in text and "python-only" not in text


def test_a_field_with_the_name_of_another_option_is_refused():
    with pytest.raises(UsageError, match='"first" has the name of another option'):
        line("").add("more", setting_words(settings_of(Half()), "settings"))


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("--lr", ["--optimizer.learning-rate", "--last"], "--optimizer.learning-rate"),
        ("--eval-every", ["--evaluate-every", "--epsilon"], "--evaluate-every"),
        ("--batch-size", ["--batch", "--steps"], "--batch"),
        ("--epslion", ["--optimizer.epsilon", "--epsilon"], "--epsilon"),
        ("bc", ["bcq", "behaviour_cloning"], "behaviour_cloning"),
        ("rme", ["rem", "dqn"], "rem"),
        ("ppo", ["bcq", "dqn", "c51"], None),
        ("iql", ["bcq", "dqn", "rem"], None),
        ("zzzz", ["bcq"], None),
        ("stpes", ["steps", "step"], "steps"),
        ("x", [], None),
    ],
)
def test_a_word_is_suggested_only_where_it_is_like_the_one_that_was_written(word, known, meant):
    assert closest(word, known) == meant


def test_a_command_is_copied_as_it_is():
    assert (
        command_line("report", Path("runs/my run"), "--index", 0) == "optimist report 'runs/my run' --index 0"
    )
