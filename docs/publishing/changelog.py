"""The part of CHANGELOG.md about one version: python docs/publishing/changelog.py 0.1.0"""

import re
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "CHANGELOG.md"


def part(text: str, version: str) -> str:
    """The lines below the version's heading, up to the next heading of a version."""
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if not found:
        sys.exit(f"error: {FILE.name} has no heading for version {version}: write what has changed")
    return found[1].strip()


if __name__ == "__main__":
    print(part(FILE.read_text("utf-8"), sys.argv[1]))
