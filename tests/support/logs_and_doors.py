"""The dataset that the tests of damage start from, and the doors of a log."""

import os
import shutil

import pytest

from damage import recorded
from doors import DOORS


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("pristine"))


@pytest.fixture
def folder(pristine, tmp_path):
    shutil.copytree(pristine, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(params=DOORS, ids=lambda door: door.__name__)
def door(request, tmp_path):
    """The dataset of a log, given like the arguments of `from_arrays`."""
    return lambda **given: request.param(tmp_path, given)


@pytest.fixture(scope="module")
def quick_disk():
    """Files are not synced to disk: these tests simulate no power failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
