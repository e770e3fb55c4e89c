"""Numbers are short, and rounded as a person would."""

import pytest

from optimist.studies.report.formatting import in_words, number, spread
from optimist.studies.scores.curves import Spread


@pytest.mark.parametrize(
    ("value", "words"), [(1234.4, "1,234"), (9.13, "9.1"), (0.254, "0.25"), (-2.0, "-2.0"), (0, "0.0")]
)
def test_numbers_are_short(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(12345, "12,345"), (0.1, "0.1"), (71.2345, "71.23"), ([1, 2.5], "1, 2.5"), (True, "True")],
)
def test_values_are_said_as_a_person_would(value, words):
    assert in_words(value) == words


def test_a_spread_keeps_the_decimals_of_its_mean():
    assert spread(Spread(mean=9.12, deviation=0.84)) == "9.1 ± 0.8"
    assert spread(Spread(mean=1234.5, deviation=98.7)) == "1,234 ± 99"
    assert spread(Spread(mean=9.12, deviation=None)) == "9.1"
