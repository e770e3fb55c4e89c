"""The peers, PyTorch and d3rlpy, in their own environment, which is created on first use."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from optimist.data.machine import cache_folder
from optimist.errors import StorageError, UsageError
from optimist.studies.bench import timing

PYTHON = "OPTIMIST_PEERS"  # a variable that names a Python with both packages; then nothing is installed
PACKAGES = ("torch", "d3rlpy")
FORMS = {
    "eager": "eager PyTorch",
    "tuned": "tuned PyTorch",
    "compiled": "compiled PyTorch",
    "d3rlpy": "d3rlpy",
}
PROGRAM = Path(__file__).with_name("peer_program.py")
KNOWN = {form: ("dqn", "td3") if form == "d3rlpy" else ("dqn", "rem", "td3") for form in FORMS}


def python() -> Path:
    """The Python of the peers' environment; creates it if there is none, with a large download."""
    if named := os.environ.get(PYTHON):
        if not Path(named).exists():
            raise UsageError(
                f"{PYTHON}={named}: there is no such file; name a Python that has torch and d3rlpy"
            )
        return Path(named)
    folder = cache_folder() / "peers" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    here = folder / "bin" / "python"
    if (folder / "complete").exists():
        return here
    print(f"installing {' and '.join(PACKAGES)} in {folder} (once; a large download)", flush=True)
    venv.create(folder, with_pip=True, clear=True)
    words = [str(here), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    ended = subprocess.run(words, capture_output=True, text=True)
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise StorageError(
            f"the peers could not be installed ({reason}): set {PYTHON} to a Python that has them"
        )
    (folder / "complete").touch()
    return here


def knows(form: str, subject: timing.Subject) -> bool:
    """Can this peer be timed in this row? Peers have some agents and train one seed at a time."""
    return subject.part == "learner" and subject.seeds == 1 and subject.name in KNOWN[form]


class Peer:
    """A process that makes updates on request and waits between requests."""

    def __init__(self, here: Path, form: str, subject: timing.Subject):
        settings = {"form": form, "agent": subject.name, "network": subject.network, "batch": subject.batch}
        self._process = subprocess.Popen(
            [here, PROGRAM, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        answer = self._answer()
        self.problem, self.form = answer.get("problem", ""), answer.get("form", "")
        self.version = answer.get("version", "")

    def __call__(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "updates" not in answer:
            raise StorageError(f"the peer ({self.form}) stopped: {answer['problem']}")
        return int(answer["updates"])

    def _answer(self) -> dict:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"problem": "its process ended"}

    @property
    def says(self) -> str:
        """The peer with its version, or why it cannot be timed."""
        return self.problem or f"{self.form} ({self.version})"

    def close(self) -> None:
        """End the process by closing its input."""
        self._process.communicate()


@contextmanager
def started(here: Path, form: str, subject: timing.Subject) -> Iterator[Peer]:
    peer = Peer(here, form, subject)
    try:
        yield peer
    finally:
        peer.close()
