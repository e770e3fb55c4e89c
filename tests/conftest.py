"""What the whole suite shares: a strict JAX on the CPU, logs, and recorded traces to compare with.

`tests/unit` mirrors the package, starts no process and compiles nothing: `make check` runs it.
`tests/contract` has what needs a compiled program: every agent, environment, format and logger, and the loops
around them. `tests/system` has processes, kills, clusters, pages and documentation. What tests share is in
`tests/support`.
"""

from collections.abc import Callable

import quick_jax  # noqa: F401  (before JAX)

# isort: split

import pytest
from hypothesis import settings

from forgetting import LARGE, forget_programs, resident
from longest_first import place_of
from traces import Trace, recorder

pytest_plugins = ["logs_and_doors", "training_logs"]

# A busy machine is slow, not wrong: pytest's own timeout is the limit.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """A large process forgets its programs at the end of a file: other files use few of them."""
    if (nextitem is None or nextitem.path != item.path) and resident() > LARGE:
        forget_programs()


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from today's numbers")


@pytest.fixture
def golden(request) -> Callable[[str, Trace], None]:
    """golden(name, values): the values equal tests/golden/<name>.json, or become it with --update-golden."""
    update = request.config.getoption("--update-golden")
    return recorder(update=update, remedy=f"pytest {request.node.nodeid} --update-golden")
