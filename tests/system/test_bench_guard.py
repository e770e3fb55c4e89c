"""`make bench-guard` fails if an agent has lost more than a third of its speed, and only then."""

import json

import pytest
from benchmarks import guard


@pytest.mark.parametrize(("found", "slower"), [(0.67, []), (0.66, ["rem"]), (2.0, [])])
def test_a_third_is_the_limit(found, slower):
    assert guard.slower({"rem": 1.0, "dqn": 0.5}, {"rem": found, "dqn": 0.5}) == slower


def test_every_agent_has_a_recorded_ratio():
    for ratios in json.loads(guard.RECORDED.read_text()).values():
        assert ratios.keys() == {*guard.GAMES, *guard.CONTROL} and min(ratios.values()) > 0


def test_the_command_says_which_agent_is_slower(monkeypatch, capsys):
    recorded = json.loads(guard.RECORDED.read_text())["cpu"]
    monkeypatch.setattr(guard, "measured", lambda: {**recorded, "rem": recorded["rem"] / 2})
    assert guard.main([]) == 1
    assert "slower by more than a third: rem" in capsys.readouterr().out
