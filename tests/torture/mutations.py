"""Mutants of the modules that hold promises: cosmic-ray changes one operator, number or branch at a time in a
copy of the source, and the tests beside the module must then fail.

`python -m torture.mutations [PART ...]` tries the modules whose path has one of these parts; it continues
where it was stopped, and ends with the number of mutants that no test noticed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREE = ROOT / "runs" / "mutants"  # ignored by git
COPIED = ("src", "tests", "pyproject.toml")
TESTS = {  # of the modules whose silent failure would lose data or falsify results
    "data/disk/records.py": "tests/unit/data/disk/test_records.py",
    "data/disk/files.py": "tests/unit/data/disk tests/system/data/disk tests/system/test_power_loss.py",
    "data/disk/manifest.py": "tests/unit/data tests/system/data",
    "data/disk/lock.py": "tests/system/data/disk/test_lock.py tests/unit/data/test_recorder.py",
    "data/disk/reader.py": "tests/unit/data tests/system/data",
    "data/timeline.py": "tests/unit/data tests/system/data",
    "data/sampling.py": "tests/unit/data/test_sampling.py",
    "training/storage/checkpoint.py": (
        "tests/system/training/storage/test_checkpoint.py tests/system/test_power_loss.py"
    ),
    "equations/losses.py": "tests/contract/equations",
    "studies/scores/statistics.py": "tests/unit/studies/scores/test_statistics.py",
}
COMMAND = "{python} -m pytest -n 0 -x -q -p no:cacheprovider -m 'not slow' {tests}"
SETTINGS = """[cosmic-ray]
module-path = "src/optimist/{module}"
timeout = 300.0
excluded-modules = []
test-command = "{command}"
[cosmic-ray.distributor]
name = "local"
"""


def main(parts: list[str]) -> int:
    for part in COPIED:
        source = ROOT / part
        copy, whole = (shutil.copytree, {"dirs_exist_ok": True}) if source.is_dir() else (shutil.copy, {})
        copy(source, TREE / part if source.is_dir() else TREE, **whole)
    modules = [module for module in TESTS if not parts or any(part in module for part in parts)]
    return sum(surviving(module) for module in modules)


def surviving(module: str) -> int:
    """How many mutants of this module its tests do not notice."""
    session = TREE / f"{module.replace('/', '-')}.sqlite"
    settings = session.with_suffix(".toml")
    command = COMMAND.format(python=sys.executable, tests=TESTS[module])
    settings.write_text(SETTINGS.format(module=module, command=command))
    if not session.exists():
        cosmic_ray("cosmic-ray", "baseline", settings)  # the tests pass while nothing is changed
        cosmic_ray("cosmic-ray", "init", settings, session)
    cosmic_ray("cosmic-ray", "exec", settings, session)
    lines = cosmic_ray("cr-report", "--surviving-only", "--show-diff", session).splitlines()
    print("\n".join(lines), flush=True)
    return sum("SURVIVED" in line for line in lines)


def cosmic_ray(program: str, *words: object) -> str:
    environment = {**os.environ, "PYTHONPATH": "src:tests"}
    command = [str(Path(sys.executable).with_name(program)), *map(str, words)]
    return subprocess.run(
        command, cwd=TREE, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    TREE.mkdir(parents=True, exist_ok=True)
    sys.exit(bool(main(sys.argv[1:])))
