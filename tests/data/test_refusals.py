"""Opening a damaged dataset fails with one line, and verify reports the same."""

import re

import pytest

from damage import REFUSED
from optimist.data import open_dataset
from optimist.data.verify import verify
from optimist.errors import DataError


@pytest.mark.parametrize(("damage", "said"), REFUSED, ids=[damage.__name__ for damage, _ in REFUSED])
def test_opening_and_verify_refuse_it_in_one_line(folder, damage, said):
    damage(folder)
    with pytest.raises(DataError, match=said) as refused:
        open_dataset(folder)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500
    assert any(re.search(said, problem) for problem in verify(folder))
