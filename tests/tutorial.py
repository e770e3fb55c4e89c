"""The blocks of a page of the documentation, run in order as a reader would."""

import re
import shlex
from pathlib import Path

from optimist.cli.main import main

DOCS = Path(__file__).parents[1] / "docs"
EXIT_CODE = re.compile(r"# exit code (\d+)")  # what the page says that a command ends with, if not 0
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def perform(page: str, kinds: list[str], *, apart: bool = False) -> list[dict]:
    """Run the blocks of docs/`page`, of these kinds: Python, or commands. Returns the names that the
    Python blocks define: one dictionary, or one of each block if they stand `apart`."""
    found = blocks(page)
    assert [kind for kind, _ in found] == kinds
    names: list[dict] = []
    for kind, text in found:
        if kind == "python":
            if apart or not names:
                names.append({})
            exec(compile(text, str(DOCS / page), "exec"), names[-1])
            continue
        for line in text.splitlines():
            said = EXIT_CODE.search(line)
            assert main(words_of(line)) == (int(said[1]) if said else 0), line
    return names


def blocks(page: str) -> list[tuple[str, str]]:
    """The kind and the text of each block of docs/`page`."""
    return BLOCK.findall((DOCS / page).read_text("utf-8"))


def words_of(line: str) -> list[str]:
    """The words of a command after the program's name."""
    program, *words = shlex.split(line, comments=True)
    assert program == "optimist"
    return words
