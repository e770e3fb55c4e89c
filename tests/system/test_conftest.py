"""The suite's own instruments work: recorded traces notice a change, and silent broadcasting is an error."""

import os
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

import patience
import traces
from forgetting import forget_programs, resident
from longest_first import LONGEST, place_of

TRACE = {"loss": [1.0, 0.5]}


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """The golden fixture in an empty folder; recorded(update=True) is the one that writes."""
    monkeypatch.setattr(traces, "GOLDEN", tmp_path)

    def fixture(update: bool):
        return traces.recorder(update=update, remedy="pytest --update-golden")

    return fixture


def test_a_recorded_trace_is_met(recorded):
    recorded(update=True)("trace", TRACE)
    recorded(update=False)("trace", {"loss": [1.0 + 1e-7, 0.5]})


@pytest.mark.parametrize(
    "changed", [{"loss": [1.0, 0.51]}, {"loss": [1.0]}, {"loss": [1.0, 0.5], "q": []}, {}]
)
def test_a_changed_trace_is_noticed(recorded, changed):
    recorded(update=True)("trace", TRACE)
    with pytest.raises(AssertionError):
        recorded(update=False)("trace", changed)


def test_a_missing_trace_fails_with_the_command_that_makes_it(recorded):
    with pytest.raises(pytest.fail.Exception, match="pytest --update-golden"):
        recorded(update=False)("trace", TRACE)


def test_silent_broadcasting_is_an_error():
    with pytest.raises(ValueError, match="rank promotion|rank_promotion"):
        jnp.ones((3, 1)) - jnp.ones(3)


def test_the_longest_files_begin_first_and_the_others_keep_their_order():
    assert all((Path(__file__).parents[2] / file).is_file() for file in LONGEST)
    first, second = (f"{file}::test" for file in LONGEST[:2])
    found = sorted(["tests/b.py::test", second, "tests/a.py::test", first], key=place_of)
    assert found == [first, second, "tests/b.py::test", "tests/a.py::test"]


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries give memory back on their own")
def test_forgotten_programs_give_their_memory_back():
    forget_programs()
    for size in range(100, 130):
        jnp.zeros(size) + 1.0
    before = resident()
    forget_programs()
    assert resident() < before - 5 * 2**20


def test_what_python_compiled_is_kept_for_the_processes_of_tests():
    assert not sys.dont_write_bytecode and "PYTHONDONTWRITEBYTECODE" not in os.environ


@pytest.mark.parametrize(
    ("works", "loop", "quick"),
    [
        ([0.9], 1.0, True),
        ([5.0, 5.0], 10.0, True),  # all is ten times slower
        ([5.0, 5.0, 0.9], 1.0, True),  # it was slow for a moment
        ([5.0] * 6, 1.0, False),
        ([50.0] * 6, 10.0, False),
    ],
)
def test_slow_work_is_told_from_a_slow_machine(works, loop, quick, monkeypatch):
    monkeypatch.setattr(patience, "_loop", lambda seconds: loop)
    left = iter(works)
    assert patience.is_quick(lambda: next(left), seconds=1.0) == quick
    assert not list(left)
