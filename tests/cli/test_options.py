"""A field is an option: named after it, explained by its comment, with its value as the default."""

import argparse
from dataclasses import dataclass, fields, is_dataclass, replace

import pytest

from optimist.agents import available, presets
from optimist.cli.main import main
from optimist.cli.options import Parser, add_fields, option_names, seeds, whole_number, with_options
from optimist.errors import UsageError, closest
from optimist.studies.demo import Demo
from optimist.training.scales import SCALES


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5  # how fast


@dataclass(frozen=True)
class Outer:
    """A record of every kind of field."""

    count: int = 3  # how many, 100% sure
    share: float | None = 0.25  # none for no share
    limit: int | None = None
    name: str = "auto"
    bold: bool = False
    inner: Inner = Inner()


def parsed(*words: str, record=None):
    record = record or Outer()
    parser = Parser("optimist test", "A test.")
    add_fields(parser, record)
    return with_options(record, parser.options([*words]))


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
    ],
)
def test_words_become_values(words, changes):
    found = parsed(*words.split())
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
        ("--share -inf", "expected one argument"),
        ("--bold maybe", '"maybe" is neither yes nor no'),
        ("--count", "expected one argument"),
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
        parsed(*words.split())
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


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
    with pytest.raises(argparse.ArgumentTypeError, match="are no seeds"):
        seeds(text)


def test_options_that_come_later_are_passed_over_with_their_values():
    parser = Parser("optimist test", "A test.")
    parser.add_argument("thing")
    parser.add_argument("--flag", action="store_true")
    later = option_names(Outer())
    for words in (
        "--count 3 it --flag",
        "--count=3 it --flag",
        "it --flag --inner.rate 0.1",
        "it --count --flag",
    ):
        found = parser.options(words.split(), later)
        assert (found.thing, found.flag) == ("it", True)
    with pytest.raises(UsageError, match='did you mean "--inner.rate"'):
        parser.options(["it", "--rates", "1"], later)


def help_of(capsys, *words: str) -> str:
    """The help without its line breaks."""
    with pytest.raises(SystemExit) as left:
        main([*words, "--help"])
    assert left.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def assert_explained(record, text: str, prefix: str = "") -> None:
    for field in fields(record):
        value, name = getattr(record, field.name), f"{prefix}{field.name}"
        if is_dataclass(value):
            assert_explained(value, text, f"{name}.")
            continue
        _, found, after = text.partition(f" --{name.replace('_', '-')} ")  # the usage has it in brackets
        assert found, name
        shown = after.partition("]")[0].rpartition("[")[2]
        assert shown == ("none" if value is None else str(value)), name


@pytest.mark.parametrize("name", available())
def test_every_field_of_training_and_agent_is_explained_with_its_default(name, capsys):
    text = help_of(capsys, "train", name)
    agent = SCALES["paper"].fitted(next(iter(presets(name).values())))
    assert_explained(agent, text)
    assert_explained(SCALES["paper"].training, text)
    assert "gradient steps between the times when the target follows the network" in text


@pytest.mark.parametrize("name", available())
def test_every_field_of_collection_and_player_is_explained_with_its_default(name, capsys):
    text = help_of(capsys, "collect", "gym/CartPole-v1", "--agent", name)
    scale = SCALES["small"]
    assert_explained(scale.fitted(next(iter(presets(name).values()))), text)
    assert_explained(scale.collection, text)


def test_every_field_of_the_demo_is_explained_with_its_default(capsys):
    assert_explained(Demo(), help_of(capsys, "demo"))


@pytest.mark.parametrize("words", [("train",), ("train", "rem")], ids=" ".join)
def test_help_names_all_agents_with_their_line(words, capsys):
    text = help_of(capsys, *words)
    for name in available():
        (kind,) = {type(agent) for agent in presets(name).values()}
        assert f" {name} {kind.__doc__.splitlines()[0]}" in text


def test_options_may_stand_between_the_arguments():
    parser = Parser("optimist test", "A test.")
    parser.add_argument("agent", nargs="?")
    parser.add_argument("data", nargs="?")
    add_fields(parser, Outer())
    found = parser.options(["rem", "--count", "4", "log"])
    assert (found.agent, found.count, found.data) == ("rem", 4, "log")


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
        ("x", [], None),
    ],
)
def test_a_word_is_suggested_only_where_it_is_like_the_one_that_was_written(word, known, meant):
    assert closest(word, known) == meant
