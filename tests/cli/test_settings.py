"""A field is an option: named after it, explained by its annotation, with its value as the default."""

from dataclasses import dataclass, replace
from typing import Annotated

import pytest

from optimist.agents import agent_class, available
from optimist.cli.words import CommandLine, read, setting_words, settings_of, shown
from optimist.errors import UsageError
from optimist.training.settings import Collection, Training, with_values


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


def line(words: str = "", record: Outer = Outer(), **more) -> CommandLine:  # noqa: B008
    made = CommandLine("test", settings, words.split())
    made.add("options", setting_words(settings_of(record), "settings", **more))
    return made


def given(words: str, record: Outer = Outer()) -> dict:  # noqa: B008
    return line(words, record).values().get("settings", {})


def parsed(words: str) -> Outer:
    return with_values(Outer(), given(words), "test")


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("", {}),
        ("--count 7", {"count": 7}),
        ("--count=7", {"count": 7}),
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
def test_words_become_values(words, changes):
    found = parsed(words)
    assert found == replace(Outer(), **changes)
    assert all(type(getattr(found, n)) is type(v) for n, v in changes.items())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--count 1.5", '"1.5" is not a whole number'),
        ("--count many", '"many" is not a number'),
        ("--count nan", '"nan" is not a number'),
        ("--count inf", '"inf" is not a number'),
        ("--count 1e999", '"1e999" is not a number'),
        ("--count none", '"none" is not a number'),
        ("--share half", '"half" is not a number'),
        ("--share nan", '"nan" is not a number'),
        ("--share -inf", "--share needs a value: --share number|none"),
        ("--reach -1,", '"-1," is not a list of numbers: write one, or several as in -1,2.5'),
        ("--reach 1,nan", '"1,nan" is not a list of numbers'),
        ("--bold maybe", '"maybe" is neither yes nor no'),
        ("--count", "--count needs a value"),
        ("--cuont 3", 'no option "--cuont": did you mean "--count"'),
        ("--rate 3", 'no option "--rate": did you mean "--inner.rate"'),
        ("--inner.rat 3", 'did you mean "--inner.rate"'),
        ("--coun 3", 'no option "--coun"'),
        ("--zzzzzz=3", 'no option "--zzzzzz": known: --bold, --count'),
        ("stray", 'no argument "stray": see optimist test --help'),
    ],
)
def test_other_words_are_refused_in_one_line(words, complaint):
    with pytest.raises(UsageError) as caught:
        parsed(words)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_what_is_said_is_given():
    assert given("--inner.rate 2") == {"inner.rate": 2.0}


def test_a_subclass_keeps_the_words_of_the_field_whose_default_it_changes():
    assert settings_of(Larger())["count"] == ("int", "how many, 100% sure", 300)


def test_help_has_the_words_and_the_default():
    text = " ".join(line().help().split())
    assert "--count int how many, 100% sure [3]" in text
    assert "--share number|none none for no share [0.25]" in text
    assert "--inner.rate number how fast [0.5]" in text
    assert "--reach numbers|none one or all [none]" in text


def test_help_has_the_default_of_each_recipe_where_they_differ():
    others = {"paper": {"count": 12_500_000}, "small": {"count": 100, "share": 0.25}}
    text = " ".join(line(others=others).help().split())
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
