"""The code has the shape docs/architecture.md gives it: imports go down, files are short, data never runs.

A module imports from lower floors, from its own folder, or from files beside it on the same floor.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "optimist"
MODULES = sorted(SOURCE.rglob("*.py"))
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]

FLOORS = {
    **dict.fromkeys(("errors", "data"), 0),
    **dict.fromkeys(("envs", "losses", "mixtures", "networks", "optimizers"), 1),
    "agents": 2,
    "training": 3,
    **dict.fromkeys(("studies/running", "studies/scoring"), 4),
    "studies/finding": 5,
    "studies/reporting": 6,
    **dict.fromkeys(("studies/demo", "studies/proposition", "studies/random_scores", "studies/__init__"), 7),
    **dict.fromkeys(
        (
            "api",
            "options",
            "tables",
            "commands",
            "data_commands",
            "replay_commands",
            "report_commands",
            "score_commands",
            "study_commands",
            "cli",
            "__init__",
            "__main__",
        ),
        8,
    ),
}
DIVIDED = {"studies"}  # a folder over several floors: what is in it has a floor each
SAME_FLOOR = {("data", "errors")}  # a folder that builds on a file of its own floor


def part(inside: Sequence[str]) -> str:
    """The folder or file that has a floor of its own, of a place inside the package."""
    return "/".join(inside[: 2 if inside[0] in DIVIDED else 1])


def imported_parts(module: Path, source: Path) -> Iterator[str]:
    """Every part of the package that a module imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        for name in imported_names(node, module, source):
            package, *inside = name.split(".")
            if package == source.name:
                there = part(inside or ["__init__"])
                yield there if there in FLOORS else "__init__"


def imported_names(node: ast.AST, module: Path, source: Path) -> list[str]:
    """Absolute dotted names: `from optimist import data` names optimist.data."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    package = [source.name, *module.relative_to(source).parent.parts]
    above = package[: len(package) - node.level + 1] if node.level else []
    origin = ".".join([*above, *filter(None, [node.module])])
    return [f"{origin}.{alias.name}" for alias in node.names]


def allowed(here: str, there: str, source: Path) -> bool:
    both_files = all((source / f"{name}.py").exists() for name in (here, there))
    peers = FLOORS[here] == FLOORS[there] and both_files and here != "errors"
    return FLOORS[there] < FLOORS[here] or here == there or peers or (here, there) in SAME_FLOOR


def broken_imports(source: Path) -> list[str]:
    found = []
    for module in sorted(source.rglob("*.py")):
        here = part(module.relative_to(source).with_suffix("").parts)
        assert here in FLOORS, (
            f"{module} stands on no floor: give it one in FLOORS and in docs/architecture.md"
        )
        wrong = {there for there in imported_parts(module, source) if not allowed(here, there, source)}
        found += [f"{module.relative_to(source)} imports {there}" for there in sorted(wrong)]
    return found


def test_imports_go_down():
    assert broken_imports(SOURCE) == []


@pytest.fixture
def small_package(tmp_path):
    """A made-up package in which each test plants one import."""

    def plant(path: str, text: str) -> list[str]:
        source = tmp_path / "optimist"
        for name in (
            "errors.py",
            "losses.py",
            "mixtures.py",
            "networks/tables.py",
            "agents/_agent.py",
            "data/store.py",
            "agents/rem.py",
        ):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).touch()
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
        return broken_imports(source)

    return plant


@pytest.mark.parametrize(
    ("path", "text", "there"),
    [
        ("data/store.py", "from optimist.training.run import Run", "training"),
        ("data/store.py", "import optimist.agents.rem", "agents"),
        ("data/store.py", "from optimist import losses", "losses"),
        ("data/store.py", "from ..agents import rem", "agents"),
        ("data/store.py", "def late():\n    from optimist import agents", "agents"),
        ("data/store.py", "import optimist", "__init__"),
        ("data/formats/arrays.py", "from ...losses import huber", "losses"),
        ("losses.py", "from optimist.agents.rem import Rem", "agents"),
        ("errors.py", "from optimist.data import store", "data"),
        ("envs/gym.py", "from optimist.losses import huber", "losses"),
        ("training/run.py", "from optimist.cli import main", "cli"),
        ("training/run.py", "from optimist.studies import scoring", "studies/scoring"),
        ("studies/running/job.py", "from optimist.studies.scoring.scores import Curve", "studies/scoring"),
        ("studies/scoring/scores.py", "from ..finding import results", "studies/finding"),
        ("studies/finding/results.py", "import optimist.studies.reporting.page", "studies/reporting"),
        ("studies/reporting/page.py", "from optimist.studies.demo import Demo", "studies/demo"),
        ("studies/scoring/scores.py", "import optimist.studies", "__init__"),
    ],
)
def test_an_upward_import_is_found(small_package, path, text, there):
    assert small_package(path, text) == [f"{path} imports {there}"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("data/store.py", "from optimist.errors import DataError"),
        ("data/store.py", "from . import codec"),
        ("agents/rem.py", "from optimist.agents._agent import TableAgent"),
        ("losses.py", "from optimist.mixtures import Mixture"),
        ("studies/scoring/intervals.py", "from optimist.studies.scoring import statistics"),
        ("studies/reporting/page.py", "from optimist.studies.scoring.scores import Curve"),
        ("studies/demo.py", "from optimist.studies.reporting.report import write_report"),
        ("cli.py", "import optimist.studies.reporting.report"),
    ],
)
def test_a_downward_import_is_fine(small_package, path, text):
    assert small_package(path, text) == []


@pytest.mark.parametrize("path", ["attic.py", "studies/attic.py", "studies/attic/old.py"])
def test_a_module_without_a_floor_is_found(small_package, path):
    with pytest.raises(AssertionError, match="no floor"):
        small_package(path, "")


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_no_file_is_long():
    assert {str(path): lines(path) for path in MODULES if lines(path) > 300} == {}


def test_every_concept_has_a_home():
    homeless = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [path for path in SOURCE.rglob("*") if path.stem.strip("_") in homeless] == []


UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def unsafe(node: ast.AST) -> bool:
    """Could this run code that came with the data, or a shell?"""
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] in UNSAFE_MODULES for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] in UNSAFE_MODULES
    if not isinstance(node, ast.Call):
        return False
    literal_false = [k.arg for k in node.keywords if isinstance(k.value, ast.Constant) and not k.value.value]
    switches = {k.arg for k in node.keywords if k.arg in ("allow_pickle", "shell")} - set(literal_false)
    forbidden = {"eval", "exec", "builtins.eval", "builtins.exec", "yaml.load", "yaml.unsafe_load"}
    return bool(switches) or ast.unparse(node.func) in forbidden


def unsafe_lines(text: str) -> list[int]:
    return [node.lineno for node in ast.walk(ast.parse(text)) if unsafe(node)]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_runs_what_it_reads(module):
    assert unsafe_lines(module.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=trusted)",
        "eval(text)",
        "exec(text)",
        "subprocess.run(line, shell=True)",
        "yaml.load(text)",
    ],
)
def test_running_what_is_read_is_found(text):
    assert unsafe_lines(text) == [1]
    assert unsafe_lines("np.load(path, allow_pickle=False); jax.eval_shape(f); model.eval()") == []


def test_the_data_floor_needs_no_accelerator():
    """Datasets open on machines without JAX, and in worker processes that must not load it."""
    heavy = {"jax", "jaxlib", "optax"}
    for module in (SOURCE / "data").rglob("*.py"):
        nodes = ast.walk(ast.parse(module.read_text("utf-8")))
        names = {name.split(".")[0] for node in nodes for name in imported_names(node, module, SOURCE)}
        assert not names & heavy, module


def test_the_readme_names_both_commands():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in readme
    assert "make test" in readme


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_point_to_files(page):
    prose = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", prose)]
    missing = [link for link in links if link and "://" not in link and not (page.parent / link).exists()]
    assert missing == []
