"""A command is made from a signature, an option from a field: their help, and their values in typed words."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pytest

from optimist.agents import agent_class, available
from optimist.cli.words import (
    CommandLine,
    call,
    read,
    seeds,
    setting_words,
    settings_of,
    shown,
    whole_number,
)
from optimist.errors import UsageError, closest, command_line
from optimist.training.settings import Collection, Training, with_values


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
    for row in (
        "DATA a folder; made before",
        "--count int how many [3]",
        "--rate number how fast [as before]",
        "--seeds 0,1,2 of each run [0]",
        "--no-select choose none",
        "a half of it: --first int|none only the first steps [none]",
    ):
        assert row in text
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


@dataclass(frozen=True)
class Inner:
    rate: Annotated[float, "how fast"] = 0.5


@dataclass(frozen=True)
class Outer:
    """A record of every kind of field."""

    count: Annotated[int, "how many, 100% sure"] = 3
    share: Annotated[float | None, "none for no share"] = 0.25
    limit: int | None = None
    name: str = "auto"
    bold: bool = False
    reach: Annotated[tuple[float, ...] | float | None, "one or all"] = None
    inner: Inner = Inner()


@dataclass(frozen=True)
class Larger(Outer):
    count: int = 300


def settings() -> None:
    """A test."""


def fields(words: str = "", record: Outer = Outer(), **more) -> CommandLine:  # noqa: B008
    made = CommandLine("test", settings, words.split())
    made.add("options", setting_words(settings_of(record), "settings", **more))
    return made


def given(words: str, record: Outer = Outer()) -> dict:  # noqa: B008
    return fields(words, record).values().get("settings", {})


def parsed(words: str) -> Outer:
    return with_values(Outer(), given(words), "test")


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("", {}),
        ("--count 7", {"count": 7}),
        ("--count 1e6", {"count": 1_000_000}),
        ("--count 1_000", {"count": 1000}),
        ("--count -4", {"count": -4}),
        ("--share none", {"share": None}),
        ("--share 1e-3", {"share": 0.001}),
        ("--limit 5", {"limit": 5}),
        ("--limit None", {"limit": None}),
        ("--name none", {"name": "none"}),
        ("--bold yes", {"bold": True}),
        ("--bold FALSE", {"bold": False}),
        ("--inner.rate 2", {"inner": Inner(rate=2.0)}),
        ("--share -1e-3", {"share": -0.001}),
        ("--reach 5", {"reach": 5.0}),
        ("--reach 0,-300", {"reach": (0.0, -300.0)}),
        ("--reach -300,5", {"reach": (-300.0, 5.0)}),
        ("--reach -.5,1e3", {"reach": (-0.5, 1000.0)}),
        ("--reach=-1,-2", {"reach": (-1.0, -2.0)}),
        ("--reach none", {"reach": None}),
    ],
)
def test_words_become_the_values_of_fields(words, changes):
    found = parsed(words)
    assert found == replace(Outer(), **changes)
    assert all(type(getattr(found, n)) is type(v) for n, v in changes.items())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--count nan", '"nan" is not a number'),
        ("--count inf", '"inf" is not a number'),
        ("--count 1e999", '"1e999" is not a number'),
        ("--count none", '"none" is not a number'),
        ("--share half", '"half" is not a number'),
        ("--share -inf", "--share needs a value: --share number|none"),
        ("--reach -1,", '"-1," is not a list of numbers: write one, or several as in -1,2.5'),
        ("--reach 1,nan", '"1,nan" is not a list of numbers'),
        ("--bold maybe", '"maybe" is neither yes nor no'),
        ("--rate 3", 'no option "--rate": did you mean "--inner.rate"'),
        ("--inner.rat 3", 'did you mean "--inner.rate"'),
        ("--zzzzzz=3", 'no option "--zzzzzz": known: --bold, --count'),
    ],
)
def test_other_values_of_fields_are_refused_in_one_line(words, complaint):
    with pytest.raises(UsageError) as caught:
        parsed(words)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_subclass_keeps_the_words_of_the_field_whose_default_it_changes():
    assert settings_of(Larger())["count"] == ("int", "how many, 100% sure", 300)


def test_help_has_the_words_and_the_default():
    text = " ".join(fields().help().split())
    assert "--count int how many, 100% sure [3]" in text
    assert "--share number|none none for no share [0.25]" in text
    assert "--inner.rate number how fast [0.5]" in text
    assert "--reach numbers|none one or all [none]" in text


def test_help_has_the_default_of_each_recipe_where_they_differ():
    others = {"paper": {"count": 12_500_000}, "small": {"count": 100, "share": 0.25}}
    text = " ".join(fields(others=others).help().split())
    assert "[paper: 12_500_000, small: 100]" in text
    assert "none for no share [0.25]" in text


@pytest.mark.parametrize("value", [12_500_000, 5e-05, -0.5, None, True, False, "auto", (-1.0, 0.5)])
def test_a_default_may_be_written_back(value):
    record = replace(Outer(), **{"count" if type(value) is int else "limit": value})
    kind = {int: "--count", float: "--share", bool: "--bold", str: "--name", tuple: "--reach"}.get(
        type(value), "--share"
    )
    assert list(given(f"{kind}={shown(value)}", record).values()) == [value]


EVERY = {"training": Training(), "collection": Collection()} | {
    name: agent_class(name)() for name in available()
}


@pytest.mark.parametrize("name", EVERY)
def test_every_default_can_be_written_on_the_command_line(name):
    for setting in settings_of(EVERY[name]).values():
        text = shown(setting.default)
        assert shown(read(setting.kind, text)) == text
