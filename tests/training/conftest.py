"""The log that most tests of training read."""

import pytest

from little import played


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """A few hundred steps of MinAtar Breakout, played at random."""
    return played(tmp_path_factory.mktemp("log") / "data")
