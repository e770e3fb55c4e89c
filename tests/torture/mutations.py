"""Removes each guard of guards.py in a copy of the tree and runs the test that must fail then.

`python -m torture.mutations` continues where it was stopped, and prints the table of docs/reliability.md.
"""

import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import quick_jax  # noqa: F401  (before JAX)

# isort: split

import jax.numpy  # noqa: F401  (imported once for all tests, as the packages below)
import pyarrow  # noqa: F401
import pytest
import safetensors.numpy  # noqa: F401
import zstandard  # noqa: F401

from torture.guards import GUARDS, Guard
from torture.results import Results

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "benchmarks", "docs", "pyproject.toml", "README.md", "Makefile", "CONTRIBUTING.md")
SECONDS = 300  # for one test; a guard whose absence makes a test hang is caught too


def main(words: list[str]) -> int:
    """The number of guards whose absence no test notices; `words` may be parts of promises to try alone."""
    warnings.filterwarnings("ignore", message="os.fork")
    results = Results("mutations")
    chosen = [guard for guard in GUARDS if not words or any(word in guard.promise for word in words)]
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        tree = Path(name)
        for part in COPIED:
            source = ROOT / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / part)
        left = [guard for guard in chosen if not _caught(results, guard)]
        for guard in left:
            results.add(_key(guard), _verdict(tree, guard))
            print(f"{results.known[_key(guard)]}: {guard.promise}", flush=True)
        failed = _fails_anyway(tree, chosen) if left else ""
        for guard in chosen:
            if failed and guard.test.endswith(failed):  # its failure said nothing about the guard
                results.add(_key(guard), f"fails although the guard is there: {failed}")
    print(table(results))
    if failed:
        print(f"{failed}: although every guard was there; repair it first")
    return max(bool(failed), sum(not _caught(results, guard) for guard in chosen))


def _fails_anyway(tree: Path, guards: list[Guard]) -> str:
    """The name of a test that fails although every guard is there; empty if all pass."""
    tests = {slow: sorted({guard.test for guard in guards if guard.slow == slow}) for slow in (False, True)}
    found = (_failed(tree, *names, slow=slow) for slow, names in tests.items() if names)
    return next(filter(None, found), "")


def _verdict(tree: Path, guard: Guard) -> str:
    """The name of the test that failed without the guard."""
    file = tree / "src" / "optimist" / guard.file
    whole = file.read_text(encoding="utf-8")
    if whole.count(guard.text) != 1:
        return "the text is not there once"
    file.write_text(whole.replace(guard.text, guard.without), encoding="utf-8")
    try:
        return _failed(tree, guard.test, slow=guard.slow) or "NOT CAUGHT"
    finally:
        file.write_text(whole, encoding="utf-8")


def _failed(tree: Path, *tests: str, slow: bool) -> str:
    """The name of the first test that fails; empty if all pass."""
    output = tree / "output.txt"
    child = os.fork()  # what tests import from other packages is imported already
    if not child:
        os.setsid()  # so that what a hanging test has started ends with it
        try:
            _test(tree, tests, output, "slow" if slow else "not slow")
        except BaseException:
            output.write_text(traceback.format_exc())
        finally:
            os._exit(70)  # never the parent's work, whatever happened
    deadline = time.monotonic() + SECONDS * len(tests)
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "it hangs"
        time.sleep(0.05)
    code = os.waitstatus_to_exitcode(ended[1])
    named = re.search(r"^(?:FAILED|ERROR) \S*?::(\w+)", output.read_text(errors="replace"), re.MULTILINE)
    if code < 0:
        return f"{tests[0].rpartition('::')[2]} ({signal.Signals(-code).name} ended it)"
    return named[1] if named else "" if code == 0 else f"pytest ended with {code}"


def _test(tree: Path, tests: tuple[str, ...], output: Path, marked: str) -> None:
    """Run tests of the copied tree in this process, and end it."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.chdir(tree)
    places = [str(tree / part) for part in ("src", "tests", ".")]
    os.environ["PYTHONPATH"] = os.pathsep.join(places)
    sys.path[:0] = places
    for name in [name for name in sys.modules if name.partition(".")[0] in ("torture", "optimist")]:
        del sys.modules[name]
    options = ["-n", "0", "-x", "-q", "-p", "no:cacheprovider", "-m", marked]
    code = pytest.main([*options, *(f"tests/{test}" for test in tests)])
    sys.stdout.flush()
    os._exit(code)


def _key(guard: Guard) -> str:
    return f"{guard.promise}: {guard.text} -> {guard.without}"


def _caught(results: Results, guard: Guard) -> bool:
    verdict = results.known.get(_key(guard), "")
    return verdict.startswith("test_") or verdict == "it hangs"


def table(results: Results) -> str:
    rows = ["| guard that was removed | where | test that failed |", "|---|---|---|"]
    for guard in GUARDS:
        verdict = results.known.get(_key(guard), "not tried")
        rows.append(f"| {guard.promise} | `{guard.file}` | `{verdict}` |")
    caught = sum(_caught(results, guard) for guard in GUARDS)
    return "\n".join([*rows, "", f"{caught} of {len(GUARDS)} removals were caught."])


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
