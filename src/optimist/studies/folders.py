"""Folders for labels that people write: legible, and never the same for two of them."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

LONGEST_NAME = 80  # letters of a label in a folder's name


class Folders(NamedTuple):
    """The folder of every environment, part of the data and label: no two of a kind share one."""

    environments: dict[str, str]
    parts: dict[str, str]
    labels: dict[str, str]


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A folder for each label, no two the same: "REM (a)" is rem-a, unless another label would be too. Then,
    and where nothing legible is left or too much, the label's hash tells them apart."""
    labels = list(dict.fromkeys(labels))
    names = {label: plain(label) for label in labels}
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    return {
        label: name if name and name not in shared and len(name) <= LONGEST_NAME else _marked(label, name)
        for label, name in names.items()
    }


def plain(label: str) -> str:
    """A label in the letters of a folder's name; other labels may come to the same."""
    return re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")


def _marked(label: str, name: str) -> str:
    mark = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{name[:LONGEST_NAME]}-{mark}".lstrip("-")
