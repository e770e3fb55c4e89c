"""The blocks of a page of the documentation, run in order as a reader would."""

import re
import shlex
from pathlib import Path

from optimist.cli.main import main

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def perform(page: str, kinds: list[str], *, apart: bool = False) -> list[dict]:
    """Run the blocks of docs/`page`, of these kinds: Python, or commands. Returns the names that the
    Python blocks define: one dictionary, or one of each block if they stand `apart`."""
    path = DOCS / page
    blocks = BLOCK.findall(path.read_text("utf-8"))
    assert [kind for kind, _ in blocks] == kinds
    names: list[dict] = []
    for kind, text in blocks:
        if kind == "python":
            if apart or not names:
                names.append({})
            exec(compile(text, str(path), "exec"), names[-1])
            continue
        for line in text.splitlines():
            program, *words = shlex.split(line)
            assert program == "optimist"
            assert main(words) == 0, line
    return names
