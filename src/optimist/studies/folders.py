"""Readable folder names for labels; two labels never share a folder."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

LONGEST_NAME = 80  # characters of a label in a folder's name


class Folders(NamedTuple):
    """The folder names of the environments, parts of the data and labels of a study."""

    environments: dict[str, str]
    parts: dict[str, str]
    labels: dict[str, str]


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A folder for each label, all different: "REM (a)" becomes rem-a.

    If two labels give the same name, or the name is empty or too long, the label's hash is appended."""
    labels = list(dict.fromkeys(labels))
    names = {label: plain(label) for label in labels}
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    return {
        label: name if name and name not in shared and len(name) <= LONGEST_NAME else _marked(label, name)
        for label, name in names.items()
    }


def plain(label: str) -> str:
    """A label in the characters of a folder name; several labels may give the same name."""
    return re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")


def _marked(label: str, name: str) -> str:
    mark = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{name[:LONGEST_NAME]}-{mark}".lstrip("-")
