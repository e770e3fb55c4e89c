"""Peers in an environment of their own, which is made when it is first asked for: PyTorch and d3rlpy."""

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

PYTHON = "OPTIMIST_PEERS"  # names a Python that has both packages; then none is installed
PACKAGES = ("torch", "d3rlpy")
FORMS = {"eager": "eager PyTorch", "tuned": "tuned PyTorch", "d3rlpy": "d3rlpy"}
PROGRAM = Path(__file__).with_name("peer_program.py")
KNOWN = {"eager": ("dqn", "rem", "td3"), "tuned": ("dqn", "rem", "td3"), "d3rlpy": ("dqn", "td3")}


def python() -> Path:
    """The Python of the peers' environment; it is made and filled if there is none, a large download."""
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
            f"the peers could not be installed ({reason}): {PYTHON} can name a Python with them"
        )
    (folder / "complete").touch()
    return here


def knows(form: str, subject: timing.Subject) -> bool:
    """Does this peer have the agent of a row? Peers train one seed at a time."""
    return subject.part == "learner" and subject.seeds == 1 and subject.name in KNOWN[form]


class Peer:
    """A process that does updates when it is told to, and waits meanwhile."""

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
        """What it is, or why it cannot be timed."""
        return self.problem or f"{self.form} ({self.version})"

    def close(self) -> None:
        """End the process: it reads no more lines."""
        self._process.communicate()


@contextmanager
def started(here: Path, form: str, subject: timing.Subject) -> Iterator[Peer]:
    peer = Peer(here, form, subject)
    try:
        yield peer
    finally:
        peer.close()
