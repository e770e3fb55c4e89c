"""What the whole suite shares: a strict JAX on the CPU, and recorded traces to compare with."""

import os
from collections.abc import Callable
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"  # before JAX is imported, or it has chosen already
# Many a test starts the same program in a process of its own: what one has compiled serves all of them.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parent.parent / ".pytest_cache" / "compiled")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
# Programs here run for milliseconds, and XLA takes seconds to polish them. Processes that tests start inherit
# this, so that all of them round alike.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
os.environ["XLA_FLAGS"] = (
    "--xla_cpu_use_fusion_emitters=false"  # the older emitters compile in a third of the time
)

import jax
import pytest
from hypothesis import settings

from traces import Trace, recorder

# A busy machine is slow, not wrong: pytest's own timeout is the limit.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# (B, 1) - (B,) is nearly always a mistake; here it is an error.
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from today's numbers")


@pytest.fixture
def golden(request) -> Callable[[str, Trace], None]:
    """golden(name, values): the values equal tests/golden/<name>.json, or become it with --update-golden."""
    update = request.config.getoption("--update-golden")
    return recorder(update=update, remedy=f"pytest {request.node.nodeid} --update-golden")
