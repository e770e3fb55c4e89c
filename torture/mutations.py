"""Removes each guard of guards.py in a copy of the tree and runs the test that must fail then.

`python -m torture.mutations` continues where it was stopped, and prints the table of docs/reliability.md.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from torture.guards import GUARDS, Guard
from torture.results import Results

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "benchmarks", "docs", "pyproject.toml", "README.md", "Makefile", "CONTRIBUTING.md")
SECONDS = 300  # for one test; a guard whose absence makes a test hang is caught too


def main(words: list[str]) -> int:
    """The number of guards whose absence no test notices; `words` may be parts of promises to try alone."""
    results = Results("mutations")
    chosen = [guard for guard in GUARDS if not words or any(word in guard.promise for word in words)]
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        tree = Path(name)
        for part in COPIED:
            source = ROOT / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / part)
        left = [guard for guard in chosen if not _caught(results, guard)]
        for guard in left:
            key = f"{guard.promise}: {guard.text} -> {guard.without}"
            results.add(key, _verdict(tree, guard))
            print(f"{results.known[key]}: {guard.promise}", flush=True)
        failed = _failed(tree, *sorted({guard.test for guard in left})) if left else ""
        if failed:
            print(f"{failed} fails although every guard is there: repair it first")
            return len(left)
    print(table(results))
    return sum(not _caught(results, guard) for guard in chosen)


def _verdict(tree: Path, guard: Guard) -> str:
    """The name of the test that failed without the guard."""
    file = tree / "src" / "optimist" / guard.file
    whole = file.read_text(encoding="utf-8")
    if whole.count(guard.text) != 1:
        return "the text is not there once"
    file.write_text(whole.replace(guard.text, guard.without), encoding="utf-8")
    try:
        return _failed(tree, guard.test) or "NOT CAUGHT"
    finally:
        file.write_text(whole, encoding="utf-8")


def _failed(tree: Path, *tests: str) -> str:
    """The name of the first test that fails; empty if all pass."""
    line = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(tree / part) for part in ("src", "tests", ".")),
    }
    command = [*line, *(f"tests/{test}" for test in tests)]
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS * len(tests)
        )
    except subprocess.TimeoutExpired:
        return "it hangs"
    named = re.search(r"^(?:FAILED|ERROR) \S*?::(\w+)", run.stdout, re.MULTILINE)
    if run.returncode < 0:
        return f"{Path(tests[0]).name} ({signal.Signals(-run.returncode).name} ended it)"
    return named[1] if named else "" if run.returncode == 0 else f"pytest ended with {run.returncode}"


def _caught(results: Results, guard: Guard) -> bool:
    verdict = results.known.get(f"{guard.promise}: {guard.text} -> {guard.without}", "")
    return verdict.startswith("test_") or verdict == "it hangs"


def table(results: Results) -> str:
    rows = ["| guard that was removed | where | test that failed |", "|---|---|---|"]
    for guard in GUARDS:
        verdict = results.known.get(f"{guard.promise}: {guard.text} -> {guard.without}", "not tried")
        rows.append(f"| {guard.promise} | `{guard.file}` | `{verdict}` |")
    caught = sum(_caught(results, guard) for guard in GUARDS)
    return "\n".join([*rows, "", f"{caught} of {len(GUARDS)} removals were caught."])


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
