"""The quick form of `make torture`: a few cases of every campaign that needs no process of its own, and the
list of guards is sound."""

import ast
from pathlib import Path

import pytest

from torture import campaign, files, machines, records
from torture.guards import GUARDS

ROOT = Path(__file__).parents[2]
POWER = [each for each in machines.CAMPAIGNS if each.case is machines.lose_power]
QUICK = (*files.CAMPAIGNS, *records.CAMPAIGNS, *POWER)


@pytest.mark.parametrize("attack", QUICK, ids=lambda each: each.name)
def test_a_few_cases_of_each_campaign_survive(attack):
    first = attack.cases  # not those of the whole campaign
    assert [campaign.verdict(attack, first + number) for number in range(3)] == [campaign.SURVIVED] * 3


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.promise)
def test_a_guard_is_there_once_and_its_test_exists(guard):
    text = (ROOT / "src" / "optimist" / guard.file).read_text()
    assert text.count(guard.text) == 1
    if guard.file.endswith(".py"):
        ast.parse(text.replace(guard.text, guard.without))
    file, _, name = guard.test.partition("::")
    assert f"def {name}(" in (ROOT / "tests" / file).read_text()


def test_each_promise_is_listed_once():
    assert len({guard.promise for guard in GUARDS}) == len(GUARDS) >= 40
