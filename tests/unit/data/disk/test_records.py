"""Records hold what their class says, and a sealed text is what was sealed, or they are refused."""

from dataclasses import dataclass

import pytest

from optimist.data.disk.records import json_value, record, sealed, unsealed


@dataclass(frozen=True)
class Kept:
    step: int
    value: float | None = None


def test_a_record_has_the_types_of_its_class():
    assert record(Kept, {"step": 3, "value": 2}) == Kept(3, 2.0)


@pytest.mark.parametrize("value", [{"step": "3"}, {"value": 1.0}, [3], {"step": 1.5}, {"step": True}])
def test_a_value_of_another_kind_is_refused(value):
    with pytest.raises(ValueError):
        record(Kept, value)


def test_the_place_is_named():
    with pytest.raises(ValueError, match=r"Expected `int`, got `str` - at `\$\[0\]\.step`"):
        record(list[Kept], [{"step": "three"}])


def test_a_sealed_text_gives_its_content_back():
    content = {"name": "crème", "rows": [1, 2.5, None]}
    assert unsealed(sealed(content)) == content == unsealed(sealed(content, indent=1))


@pytest.mark.parametrize(
    ("old", "new"), [("2.5", "2.6"), ("crème", "creme"), ('"rows"', '"row"'), ("sha256", "sha")]
)
def test_an_edited_text_is_refused(old, new):
    text = sealed({"name": "crème", "rows": [1, 2.5, None]})
    assert old in text
    with pytest.raises(ValueError, match="damaged or edited"):
        unsealed(text.replace(old, new))


@pytest.mark.parametrize("content", [{"value": float("nan")}, {"value": object()}, {"name": "\ud800"}])
def test_what_json_cannot_hold_is_not_sealed(content):
    with pytest.raises((ValueError, TypeError)):
        sealed(content)


def test_a_number_that_no_machine_holds_is_refused():
    with pytest.raises(ValueError, match="a number of 31 digits"):
        json_value("[1" + "0" * 30 + "]")


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, "[" * 100_000])
def test_deep_nesting_is_refused(text):
    with pytest.raises(ValueError):
        json_value(text)
