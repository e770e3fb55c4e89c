"""The code has the shape docs/architecture.md gives it: imports go down, never in a circle; data never runs.

A module imports from lower floors or from its own folder.
"""

import ast
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "optimist"
MODULES = sorted(SOURCE.rglob("*.py"))
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").rglob("*.md")]

FLOORS = {
    **dict.fromkeys(("errors", "plugins", "data"), 0),
    **dict.fromkeys(("envs", "equations", "networks"), 1),
    "agents": 2,
    "training": 3,
    "choosing": 4,
    "studies": 5,
    "api": 6,
    **dict.fromkeys(("__init__", "cli"), 7),
    "__main__": 8,
}
SAME_FLOOR = {("data", "errors"), ("data", "plugins"), ("plugins", "errors")}


def imported_parts(module: Path, source: Path) -> Iterator[str]:
    """Every part of the package that a module imports, wherever in the file it does so."""
    for name in imports(module, source):
        package, *inside = name.split(".")
        if package == source.name:
            yield inside[0] if inside and inside[0] in FLOORS else "__init__"


def imports(module: Path, source: Path) -> list[str]:
    nodes = ast.walk(ast.parse(module.read_text("utf-8")))
    return [name for node in nodes for name in imported_names(node, module, source)]


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


def allowed(here: str, there: str) -> bool:
    return FLOORS[there] < FLOORS[here] or here == there or (here, there) in SAME_FLOOR


def broken_imports(source: Path) -> list[str]:
    found = []
    for module in sorted(source.rglob("*.py")):
        here = module.relative_to(source).with_suffix("").parts[0]
        assert here in FLOORS, (
            f"{module} stands on no floor: give it one in FLOORS and in docs/architecture.md"
        )
        wrong = {there for there in imported_parts(module, source) if not allowed(here, there)}
        found += [f"{module.relative_to(source)} imports {there}" for there in sorted(wrong)]
    return found


def graph(source: Path) -> dict[str, set[str]]:
    """The modules that each module imports."""
    modules = {dotted(module, source): module for module in source.rglob("*.py")}

    def module_of(name: str) -> str:
        while name and name not in modules:
            name = name.rpartition(".")[0]
        return name

    return {
        name: {module_of(there) for there in imports(module, source)} - {"", name}
        for name, module in modules.items()
    }


def circle(source: Path) -> list[str]:
    """The modules of one circle of imports, or none."""
    try:
        graphlib.TopologicalSorter(graph(source)).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def dotted(module: Path, source: Path) -> str:
    parts = module.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_imports_go_down():
    assert broken_imports(SOURCE) == []


def test_no_imports_go_in_a_circle():
    assert circle(SOURCE) == []


def entries(folder: Path) -> list[Path]:
    """The files of a folder, and its folders with modules: of a deleted one its compiled code may be left."""
    return [path for path in folder.iterdir() if path.is_file() or any(path.rglob("*.py"))]


def test_the_top_is_small():
    """A newcomer sees at most 15 names when opening the package."""
    assert len(entries(SOURCE)) <= 15


# Of a folder: the most entries, and the longest chain of imports among them.
INSIDE = {"choosing": (8, 5), "cli": (9, 5), "data": (20, 8), "networks": (10, 6), "studies": (18, 8)}
MOST_LINES, MOST_FILES = 34_450, 225  # on the way to 31,000; they only go down, or the changelog says why


def test_the_package_grows_no_more():
    assert len(MODULES) <= MOST_FILES
    assert sum(len(module.read_text("utf-8").splitlines()) for module in MODULES) <= MOST_LINES


def floors(folder: str, source: Path) -> dict[str, int]:
    """The floor of every entry of a folder, from 1 on; it imports from lower ones. A circle is an error."""
    package = f"{source.name}.{folder}."
    below: dict[str, set[str]] = {}
    for module in (source / folder).rglob("*.py"):
        here = module.relative_to(source / folder).parts[0].removesuffix(".py")
        names = {
            name.removeprefix(package).split(".")[0]
            for name in imports(module, source)
            if name.startswith(package)
        }
        below.setdefault(here, set()).update(names - {here})
    below.pop("__init__", None)
    found: dict[str, int] = {}
    for entry in graphlib.TopologicalSorter(below).static_order():
        found[entry] = 1 + max((found[name] for name in below.get(entry, ()) if name in below), default=0)
    return {entry: found[entry] for entry in below}


@pytest.mark.parametrize("folder", INSIDE)
def test_a_folder_has_few_entries_on_few_floors(folder):
    most_entries, most_floors = INSIDE[folder]
    assert len(entries(SOURCE / folder)) <= most_entries
    assert max(floors(folder, SOURCE).values()) <= most_floors


def test_the_floors_of_a_folder_are_counted(tmp_path):
    source = tmp_path / "optimist"
    (source / "data" / "disk").mkdir(parents=True)
    (source / "data" / "spec.py").write_text("")
    (source / "data" / "disk" / "file.py").write_text("from optimist.data.spec import Spec")
    (source / "data" / "dataset.py").write_text(
        "from optimist.data.disk.file import read\nfrom . import spec"
    )
    assert floors("data", source) == {"spec": 1, "disk": 2, "dataset": 3}
    (source / "data" / "spec.py").write_text("from optimist.data import dataset")
    with pytest.raises(graphlib.CycleError):
        floors("data", source)


def test_training_has_one_file_for_each_question():
    """At most 24 files and folders, and a chain of imports passes at most 10 of its modules."""
    rooms = [path for path in entries(SOURCE / "training") if path.stem != "__init__"]
    assert len(rooms) <= 24
    imported, floor = graph(SOURCE), dict[str, int]()
    for name in graphlib.TopologicalSorter(imported).static_order():
        inside = [there for there in imported[name] if there.startswith("optimist.training")]
        floor[name] = 1 + max((floor[there] for there in inside), default=0)
    assert max(value for name, value in floor.items() if name.startswith("optimist.training")) <= 10


# The files of these folders are entries of a registry: one file is one agent, one format, one figure.
REGISTRIES = ("agents", "envs", "envs/_games", "data/formats", "choosing/estimators", "training/loggers")
REGISTRIES += ("studies/report/figures", "studies/engines")
ROOMS = {"studies/engines/_slurm_task.py"}  # small, with one door: they only become fewer


def small_rooms(source: Path) -> set[str]:
    """Modules under 60 lines that one other module imports, unless they are entries of a registry."""
    importers, found = list(graph(source).values()), set[str]()
    for module in source.rglob("*.py"):
        path, is_entry = module.relative_to(source), not module.name.startswith("_")
        if module.name == "__init__.py" or (is_entry and str(path.parent) in REGISTRIES):
            continue
        doors = sum(dotted(module, source) in imported for imported in importers)
        if doors == 1 and len(module.read_text("utf-8").splitlines()) < 60:
            found.add(str(path))
    return found


def test_a_small_module_with_one_importer_is_a_part_of_it():
    assert small_rooms(SOURCE) == ROOMS


def test_a_small_module_with_one_importer_is_found(tmp_path):
    source = tmp_path / "optimist"
    (source / "agents").mkdir(parents=True)
    for name, imported in (("agents/rem", "agents._base"), ("agents/_base", "errors"), ("errors", "data")):
        (source / f"{name}.py").write_text(f"from optimist.{imported} import name")
    (source / "data.py").write_text("from optimist.agents import rem" + "\n" * 60)
    assert small_rooms(source) == {
        "agents/_base.py",
        "errors.py",
    }  # an entry and a large one may have one door


@pytest.fixture
def small_package(tmp_path):
    """A made-up package in which each test plants one import."""

    def plant(path: str, text: str) -> list[str]:
        source = tmp_path / "optimist"
        for name in (
            "errors.py",
            "equations/losses.py",
            "agents/_agent.py",
            "data/dataset.py",
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
        ("data/dataset.py", "from optimist.training.run import Run", "training"),
        ("data/dataset.py", "import optimist.agents.rem", "agents"),
        ("data/dataset.py", "from optimist import equations", "equations"),
        ("data/dataset.py", "from ..agents import rem", "agents"),
        ("data/dataset.py", "def late():\n    from optimist import agents", "agents"),
        ("data/dataset.py", "import optimist", "__init__"),
        ("data/formats/arrays.py", "from ...equations import losses", "equations"),
        ("equations/losses.py", "from optimist.agents.rem import Rem", "agents"),
        ("errors.py", "from optimist.data import dataset", "data"),
        ("envs/gym.py", "from optimist.equations.losses import huber", "equations"),
        ("training/run.py", "from optimist.cli.main import main", "cli"),
        ("training/run.py", "from optimist.studies import scores", "studies"),
        ("studies/scores/curves.py", "import optimist.api", "api"),
    ],
)
def test_an_upward_import_is_found(small_package, path, text, there):
    assert small_package(path, text) == [f"{path} imports {there}"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("data/dataset.py", "from optimist.errors import DataError"),
        ("data/dataset.py", "from . import timeline"),
        ("agents/rem.py", "from optimist.agents._agent import Agent"),
        ("agents/rem.py", "from optimist.equations.mixtures import Mixture"),
        ("studies/report/page.py", "from optimist.studies.scores.curves import Curve"),
        ("cli/main.py", "import optimist.studies.report.page"),
    ],
)
def test_a_downward_import_is_fine(small_package, path, text):
    assert small_package(path, text) == []


@pytest.mark.parametrize("path", ["attic.py", "attic/old.py"])
def test_a_module_without_a_floor_is_found(small_package, path):
    with pytest.raises(AssertionError, match="no floor"):
        small_package(path, "")


def test_a_circle_is_found(tmp_path):
    source = tmp_path / "optimist"
    source.mkdir()
    (source / "one.py").write_text("from optimist.two import name")
    (source / "two.py").write_text("def late():\n    from . import one")
    assert set(circle(source)) == {"optimist.one", "optimist.two"}
    (source / "two.py").write_text("import optimist.three")
    assert circle(source) == []


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
    heavy = {"jax", "jaxlib"}
    for module in (SOURCE / "data").rglob("*.py"):
        assert not {name.split(".")[0] for name in imports(module, SOURCE)} & heavy, module


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
