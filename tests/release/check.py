"""`make release-check`: the package is built, installed in new environments, and tried as its users will.

The first command that fails ends the check with its output. The steps: build, `twine check`;
the learner's speed beside the recorded one, on a machine that does nothing else; what pip resolves for CUDA
on each Python; the wheel without extras in a new environment, doctor, demo and bench; examples, notebooks,
the pages of the documentation; the newest dependencies on each Python of this machine.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
RESOLVED = (*PYTHONS, "3.14")
CORE = [  # quick tests that touch every floor
    "tests/contract/equations",
    "tests/contract/networks/test_networks.py",
    "tests/contract/test_api.py",
    "tests/contract/agents/test_agents.py",
    "tests/system/test_portability.py",
    "tests/unit/data/test_sampling.py",
    "tests/system/data/test_dataset.py",
    "tests/system/envs/test_recording.py",
    "tests/system/cli/test_doctor.py",
]
TESTING = ["pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "opencv-python-headless", "optax"]
NOT_IN_A_WHEEL = ("tests/", "benchmarks/", "docs/")


def run(*words: str | Path, cwd: Path = ROOT, **more) -> str:
    """Run a command; its output. A failure prints it and ends the check."""
    ended = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, **more)
    if ended.returncode:
        print(ended.stdout[-4000:], ended.stderr[-4000:], sep="\n", file=sys.stderr)
        sys.exit(f"error: {' '.join(map(str, words))} ended with code {ended.returncode}")
    return ended.stdout


def environment(folder: Path, python: str | Path, *packages: str | Path) -> Path:
    """A new virtual environment with these packages; the folder of its programs."""
    run(python, "-m", "venv", folder)
    if packages:
        run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return folder / "bin"


def build(tools: Path, out: Path) -> Path:
    """sdist and wheel, checked; the wheel is made from the sdist, as it will be by others."""
    run(tools / "bin" / "python", "-m", "build", "--outdir", out)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    run(tools / "bin" / "twine", "check", "--strict", wheel, source)
    names = zipfile.ZipFile(wheel).namelist()
    stray = [name for name in names if name.startswith(NOT_IN_A_WHEEL)]
    if stray or "optimist/py.typed" not in names:
        sys.exit(f"error: the wheel has files of the repository, or no py.typed: {stray[:5]}")
    print(f"  {wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB, {len(names)} files")
    return wheel


def plain_install(wheel: Path, folder: Path) -> None:
    """The wheel alone, outside the repository: doctor, demo and bench."""
    programs = environment(folder / "plain", sys.executable, wheel)
    print(run(programs / "optimist", "doctor", cwd=folder), end="")
    run(programs / "optimist", "demo", "--out", folder / "demo", cwd=folder)
    if not (folder / "demo" / "report.html").exists():
        sys.exit("error: optimist demo ended without its page")
    run(programs / "optimist", "bench", "--quick", "--out", folder / "bench", cwd=folder)
    print((folder / "bench" / "bench.csv").read_text(), end="")


def speed() -> None:
    """The guard of the learner's speed; the recorded ratios are those of a CPU."""
    print(run(sys.executable, "-m", "benchmarks.guard", env={**os.environ, "JAX_PLATFORMS": "cpu"}), end="")


def resolves(wheel: Path, tools: Path, folder: Path) -> None:
    """What pip would install for CUDA on each Python; nothing is downloaded as a whole."""
    words = [
        "install",
        "--dry-run",
        "--quiet",
        "--ignore-installed",
        "--only-binary=:all:",
        "--target",
        folder / "x",
    ]
    for version in RESOLVED:
        for extra in ("cuda12", "cuda13") if version == RESOLVED[-1] else ("cuda12",):
            run(tools / "bin" / "pip", *words, "--python-version", version, f"{wheel}[{extra}]")
            print(f"  Python {version}: {extra} resolves", flush=True)


def newest(wheel: Path, folder: Path) -> None:
    """The core of the suite with the newest dependencies, on every Python that is here."""
    for version in PYTHONS:
        python = shutil.which(f"python{version}")
        works = (
            python and subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0
        )
        if not works:
            print(f"  Python {version} is not on this machine: not tried")
            continue
        extras = f"{wheel}[minatar,gym,remote,hdf5,minari,onnx]"
        programs = environment(folder / version, str(python), extras, *TESTING)
        words = ["-n", "2", "-m", "not slow", "-k", "not recorded", "-p", "no:cacheprovider", *CORE]
        said = run(programs / "python", "-m", "pytest", *words)
        shown = run(
            programs / "python",
            "-c",
            "import jax, numpy; print('jax', jax.__version__, 'numpy', numpy.__version__)",
        )
        print(f"  Python {version}, {shown.strip()}: {said.strip().splitlines()[-1]}")


def examples(folder: Path) -> None:
    for name in ("arrays.py", "gymnasium_loop.py", "game.py"):
        run(sys.executable, ROOT / "examples" / name, cwd=folder)
    run(sys.executable, "-m", "optimist", "study", "run", ROOT / "examples" / "study.toml", cwd=folder)


def notebooks() -> None:
    """The notebooks run from their first cell to their last; their outputs are not rewritten."""
    run(sys.executable, ROOT / "tests" / "release" / "notebooks.py")


def documentation() -> None:
    """Every page to its end: its commands and its Python, in the sizes of tests/support/reading.py."""
    words = ["-n", "2", "--timeout", "3600", "-m", "slow", "tests/system/test_documentation.py"]
    print(f"  {run(sys.executable, '-m', 'pytest', *words).strip().splitlines()[-1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tools", type=Path, required=True, help="the environment of docs/publishing/requirements.txt"
    )
    parser.add_argument(
        "--only",
        help="one step: speed, resolves, plain, examples, notebooks, documentation or newest",
    )
    options = parser.parse_args()
    tools = options.tools.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("build", flush=True)
        wheel = build(tools, folder / "dist")
        steps: dict[str, Callable[[], None]] = {
            "speed": speed,
            "resolves": lambda: resolves(wheel, tools, folder),
            "plain": lambda: plain_install(wheel, folder),
            "examples": lambda: examples(folder),
            "notebooks": notebooks,
            "documentation": documentation,
            "newest": lambda: newest(wheel, folder),
        }
        for step, perform in steps.items():
            if options.only in (None, step):
                begun = time.monotonic()
                print(step, flush=True)
                perform()
                print(f"  {step} took {time.monotonic() - begun:.0f} s", flush=True)
    print("ready to release")


if __name__ == "__main__":
    main()
