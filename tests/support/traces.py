"""Recorded traces: numbers that a change must leave alone, or show in its diff."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

GOLDEN = Path(__file__).parents[1] / "golden"

Trace = dict[str, list[float]]


def recorder(*, update: bool, remedy: str) -> Callable[[str, Trace], None]:
    def check(name: str, values: Trace) -> None:
        path = GOLDEN / f"{name}.json"
        if update:
            return write_trace(path, values)
        if not path.exists():
            pytest.fail(f"{path} is missing; record it with: {remedy}")
        compare_traces(json.loads(path.read_text()), values, remedy)

    return check


def write_trace(path: Path, values: Trace) -> None:
    path.parent.mkdir(exist_ok=True)
    plain = {key: [float(value) for value in series] for key, series in values.items()}
    path.write_text(json.dumps(plain, indent=1) + "\n")


def compare_traces(expected: Trace, values: Trace, remedy: str) -> None:
    assert sorted(values) == sorted(expected)
    for key, series in expected.items():
        message = f"{key} changed; if that was meant, record it with: {remedy}"
        np.testing.assert_allclose(values[key], series, rtol=1e-5, atol=1e-8, err_msg=message)
