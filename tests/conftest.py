"""What the whole suite shares: a strict JAX on the CPU, and recorded traces to compare with."""

import os
from collections.abc import Callable

os.environ["JAX_PLATFORMS"] = "cpu"  # before JAX is imported, or it has chosen already

import jax
import pytest

from traces import Trace, recorder

# (B, 1) - (B,) is nearly always a mistake; here it is an error.
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from today's numbers")


@pytest.fixture
def golden(request) -> Callable[[str, Trace], None]:
    """golden(name, values): the values equal tests/golden/<name>.json, or become it with --update-golden."""
    update = request.config.getoption("--update-golden")
    return recorder(update=update, remedy=f"pytest {request.node.nodeid} --update-golden")
