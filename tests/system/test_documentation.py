"""Every block of the documentation is of a known kind, names what exists, and runs."""

import ast
import os
import pydoc
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from documented import COMMANDS, PAGES, PYTHON, ROOT, SHOWN, STUDY, Block, blocks, commands
from optimist.cli.main import command_words, split
from publishing import reference
from reading import OWN_TESTS, READINGS, script

BLOCKS = [block for page in PAGES for block in blocks(page)]
WITH_BLOCKS = {block.page for block in BLOCKS if block.kind != SHOWN}
COMMAND = re.compile(r"`(optimist (?:(?:data|study|run) )?[a-z]+)")
OPTION = re.compile(r"`(--[a-z][a-z-]*)[ `]")


def test_every_block_is_of_a_known_kind():
    assert [str(block) for block in BLOCKS if block.kind not in (COMMANDS, PYTHON, STUDY, SHOWN)] == []


def test_every_page_with_blocks_is_run():
    assert set(READINGS) | set(OWN_TESTS) == WITH_BLOCKS
    assert not set(READINGS) & set(OWN_TESTS)
    for page, test in OWN_TESTS.items():
        assert f'"{Path(page).name}"' in (ROOT / test).read_text("utf-8")


def test_whatever_is_run_otherwise_is_on_its_page():
    for page, reading in READINGS.items():
        text = "".join(block.text for block in blocks(page))
        assert [old for old in (*reading.smaller, *reading.not_run) if old not in text] == [], page


def test_every_command_is_known(tmp_path):
    for block in BLOCKS:
        if block.kind == COMMANDS and block.page in READINGS:
            for program, *words in commands(block, tmp_path):
                CHECKS[program](words, block)


def check_optimist(words: list[str], block: Block) -> None:
    if "--roms" in words:  # `main` takes it out, for all commands
        del words[words.index("--roms") : words.index("--roms") + 2]
    command_words(*split(words)).values()


def check_python(words: list[str], block: Block) -> None:
    """The program exists: a file of the repository, or a part of the benchmarks."""
    if words[0] == "-m":
        if words[1] == "results":
            assert (ROOT / "results" / words[2] / "analyse.py").exists(), block
            return
        assert words[1] == "benchmarks", block
        words = [f"benchmarks/{words[2]}.py"]
    compile((ROOT / words[0]).read_text("utf-8"), words[0], "exec")


def check_bash(words: list[str], block: Block) -> None:
    assert subprocess.run(["bash", "-n", ROOT / words[0]]).returncode == 0, block


def check_make(words: list[str], block: Block) -> None:
    assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), block


def check_pip(words: list[str], block: Block) -> None:
    assert words[0] in ("install", "download"), block
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for found in re.findall(r"optimist-rl\[([\w,]+)\]", " ".join(words)):
        assert set(found.split(",")) <= set(extras), block


def check_ray(words: list[str], block: Block) -> None:
    assert words[0] == "start", block


CHECKS = {
    "optimist": check_optimist,
    "python": check_python,
    "bash": check_bash,
    "make": check_make,
    "pip": check_pip,
    "ray": check_ray,
}


def test_a_command_that_is_not_known_is_found(tmp_path):
    """What the test above refuses: a program, a command, an option and a file that do not exist."""
    for text in ("optimistic demo\n", "optimist demo | less\n"):
        with pytest.raises(AssertionError, match="command not found|No such file"):
            commands(Block("page.md", 1, COMMANDS, text), tmp_path)
    ((_, *words),) = commands(
        Block("page.md", 1, COMMANDS, "optimist train rem data --setps 3  # few\n"), tmp_path
    )
    with pytest.raises(Exception, match='no option "--setps": did you mean "--steps"'):
        check_optimist(words, BLOCKS[0])
    with pytest.raises(FileNotFoundError):
        check_python(["results/nothing.py"], BLOCKS[0])


def test_every_python_block_compiles_and_its_names_exist():
    for block in BLOCKS:
        for name in optimist_names(block.text) if block.kind == PYTHON else []:
            assert pydoc.locate(name), f"{block}: {name}"


def optimist_names(text: str) -> list[str]:
    """Whatever is imported from optimist, and attributes of the package itself."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "optimist":
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("optimist."):
            found.append(ast.unparse(node))
    return [name for name in found if re.fullmatch(r"[\w.]+", name)]


def test_a_name_that_does_not_exist_is_found():
    text = "import optimist\noptimist.Dataset.from_arays(x)\nfrom optimist.equations.losses import hubber"
    named = ["optimist.equations.losses.hubber", "optimist.Dataset.from_arays", "optimist.Dataset"]
    assert sorted(optimist_names(text)) == sorted(named)
    assert [name for name in named if not pydoc.locate(name)] == named[:2]


def test_every_command_and_option_that_the_prose_names_exists():
    known = "\n".join(reference.pages().values())
    options = {"--help", "--roms", *re.findall(r"`(--[a-z-]+)", known)}
    options |= {"--" + name.replace("_", "-") for name in re.findall(r"^\| `(\w+)`", known, re.MULTILINE)}
    prose = {page: path.read_text("utf-8") for page, path in PAGES.items()}
    named = {option: page for page, text in prose.items() for option in OPTION.findall(text)}
    assert {option: page for option, page in named.items() if option not in options} == {}
    named = {command: page for page, text in prose.items() for command in COMMAND.findall(text)}
    assert {command: page for command, page in named.items() if f"# {command}\n" not in known} == {}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", sorted(READINGS))
def test_every_block_of_the_page_runs(page, tmp_path):
    for folder in ("docs", "examples", "results"):  # some commands write there
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "script").write_text(script(page))
    path = os.pathsep.join([str(tmp_path), *map(str, (ROOT / "src", ROOT))])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHON": sys.executable, "MPLBACKEND": "Agg"}
    ended = subprocess.run(["bash", "script"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-3000:]
    beside = (tmp_path / page).parent
    for made in {*tmp_path.glob("*.csv"), *beside.glob("*.csv")}:  # a script makes the same table again
        kept = PAGES[page].with_name(made.name)
        assert not kept.exists() or made.read_text() == kept.read_text(), made.name
