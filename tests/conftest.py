"""What the whole suite shares: a strict JAX on the CPU, and recorded traces to compare with."""

import json
import os
from collections.abc import Callable
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"  # before JAX is imported, or it has chosen already

import jax
import numpy as np
import pytest

# (B, 1) - (B,) is nearly always a mistake; here it is an error.
jax.config.update("jax_numpy_rank_promotion", "raise")

GOLDEN = Path(__file__).parent / "golden"

Trace = dict[str, list[float]]


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from today's numbers")


@pytest.fixture
def golden(request) -> Callable[[str, Trace], None]:
    """golden(name, values): the values equal tests/golden/<name>.json, or become it with --update-golden."""
    update = request.config.getoption("--update-golden")
    return recorder(update=update, remedy=f"pytest {request.node.nodeid} --update-golden")


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
