"""Updates per second beside PyTorch and d3rlpy: `OPTIMIST_PEERS=PYTHON python -m benchmarks peers [--quick]`.

PYTHON has both packages (`pip install torch d3rlpy` in an environment of its own). Our learner and every form
of a peer (peer_torch.py says which) are timed in turns; a ratio is the median of the ratios of a round.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from optimist.studies.bench import QUICK, WHOLE, Subject, Timing, learning, random_log, rounded
from optimist.studies.sheet import Sheet, print_sheet

FORMS = {
    "eager": "eager PyTorch",
    "tuned": "tuned PyTorch",
    "compiled": "compiled PyTorch",
    "d3rlpy": "d3rlpy",
}
KNOWN = {form: ("dqn", "td3") if form == "d3rlpy" else ("dqn", "rem", "td3") for form in FORMS}


def program(name: str) -> list[str]:
    """The command line of a program of this folder in the environment of the peers."""
    return [os.environ["OPTIMIST_PEERS"], str(Path(__file__).with_name(name))]


def answers(name: str, settings: dict, folder: Path) -> list[dict]:
    """Run a program of the peers with these settings; return the JSON that it prints, line by line."""
    (folder / "settings.json").write_text(json.dumps(settings))
    done = subprocess.run([*program(name), str(folder / "settings.json")], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Peer:
    """A process that makes updates on request and waits between requests."""

    def __init__(self, form: str, subject: Subject):
        settings = {"form": form, "agent": subject.what, "network": subject.network, "batch": subject.batch}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(
            [*program("peer_torch.py"), json.dumps(settings)], text=True, **pipes
        )
        answer = self._answer()
        self.problem = answer.get("problem", "")
        self.says = self.problem or f"{answer['form']} ({answer['version']})"

    def __call__(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "updates" not in answer:
            raise SystemExit(f"the peer ({self.says}) stopped: {answer['problem']}")
        return int(answer["updates"])

    def _answer(self) -> dict:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"problem": "its process ended"}

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_) -> None:
        self._process.communicate()  # it ends with its input


def row(agent: str, network: str, batch: int, timing: Timing) -> Iterator[str]:
    """The rate of our learner, how many times that of each form it is, and which form has which version."""
    subject, update = learning(random_log(network), agent, network, batch, 1)
    with contextlib.ExitStack() as stack:
        peers = {form: stack.enter_context(Peer(form, subject)) for form in FORMS if agent in KNOWN[form]}
        ready = [form for form, peer in peers.items() if not peer.problem]
        rounds = timing.rates([update, *(peers[form] for form in ready)])
    print(f"{agent}, {network}:", "; ".join(f"{FORMS[form]}: {peer.says}" for form, peer in peers.items()))
    yield from (agent, network, str(batch), rounded(median(rates[0] for rates in rounds)))
    for form in FORMS:
        ratios = [rates[0] / rates[1 + ready.index(form)] for rates in rounds] if form in ready else []
        yield f"{median(ratios):.2f}" if ratios else ""


def main() -> None:
    quick = "--quick" in sys.argv
    rows = [each for each in (QUICK if quick else WHOLE) if each[0] in KNOWN["eager"] and each[3] == 1]
    timing = Timing(3, 0.4) if quick else Timing()
    shown = [list(row(agent, network, batch, timing)) for agent, network, batch, _ in rows]
    heads = ("agent", "network", "batch", "updates/s", *(f"x {name}" for name in FORMS.values()))
    print_sheet(Sheet("one seed, beside other libraries", heads, shown))
