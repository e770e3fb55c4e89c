"""The blocks of the documentation, and what bash makes of those that are commands."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ABOVE = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md"))
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [*ABOVE, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "results").rglob("*.md"))]
}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS, PYTHON, STUDY, SHOWN = "", "python", "toml", "text"  # the kinds of blocks, as they are written
PROGRAMS = ("optimist", "python", "pip", "make", "bash", "ray")

# Each program only writes its words down. No other program can be found.
RECORDED = f"""
set -e
for program in {" ".join(PROGRAMS)}; do
  eval "$program() {{ printf '%s\\x1f' $program \\"\\$@\\" >&3; printf '\\x1e' >&3; }}"
done
PATH=
"""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    text = PAGES[page].read_text("utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for found in BLOCK.finditer(text)
    ]


def commands(block: Block, folder: Path) -> list[list[str]]:
    """The words of each command of a block, the program first; nothing is run."""
    file = folder / "words"
    (folder / block.page).parent.mkdir(parents=True, exist_ok=True)  # some commands write beside their page
    script = f"{RECORDED}exec 3>{file}\ncd {folder}\n{block.text}"
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, ""), f"{block}: {ended.stderr}"
    return [line.split("\x1f")[:-1] for line in file.read_text("utf-8").split("\x1e")[:-1]]
