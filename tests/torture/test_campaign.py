"""The quick form of `make torture`: a few cases of every campaign that needs no process of its own, and the
lists of guards and of mutants name what is there."""

import re
from pathlib import Path

import pytest

from torture import campaign, files, machines, mutations, records

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
POWER = [each for each in machines.CAMPAIGNS if each.case is machines.lose_power]
QUICK = (*files.CAMPAIGNS, *records.CAMPAIGNS, *POWER)


@pytest.mark.parametrize("attack", QUICK, ids=lambda each: each.name)
def test_a_few_cases_of_each_campaign_survive(attack):
    first = attack.cases  # not those of the whole campaign
    assert [campaign.verdict(attack, first + number) for number in range(3)] == [campaign.SURVIVED] * 3


def test_every_test_of_a_guard_is_still_there():
    page = (ROOT / "docs" / "reliability.md").read_text().partition("## Every guard, removed")[2]
    named = set(re.findall(r"`(test_\w+)", page))
    defined = {
        name for file in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    assert len(named) > 60 and named <= defined


def test_mutants_are_made_of_modules_that_have_tests():
    for module, tests in mutations.TESTS.items():
        assert (ROOT / "src" / "optimist" / module).exists()
        assert all((ROOT / each).exists() for each in tests.split())
