"""The log that most tests of training read."""

from pathlib import Path

import pytest


def _played(folder: Path, **how):
    from little import played  # JAX is imported by tests that need it

    return played(folder, **how)


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """A few hundred steps of MinAtar Breakout, played at random."""
    return _played(tmp_path_factory.mktemp("log") / "data")


@pytest.fixture(scope="session")
def control_log(tmp_path_factory):
    """The same of a pendulum, whose actions are vectors."""
    return _played(tmp_path_factory.mktemp("control") / "data", game="gym/Pendulum-v1", rows=80, max_steps=40)
