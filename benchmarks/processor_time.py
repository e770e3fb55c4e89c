"""Processor time of an update, ours and PyTorch's: `python -m benchmarks processor_time`.

OPTIMIST_PEERS names a Python that has torch. On a machine that others use too, elapsed time says little;
`optimist bench --peers` is for a quiet one. PyTorch has one thread: threads that wait for each other would
count as work. Each figure is the least of five, in a process of its own.
"""

import json
import os
import subprocess
import sys

from optimist.studies.bench.peers import PROGRAM

CASES = (("rem", "minatar", 32, 200), ("td3", "control", 100, 60), ("rem", "nature", 32, 6))
LEAST = """
import json, sys, time
def least(do, updates):
    found = []
    for _ in range(5):
        done, before = 0, time.process_time()
        while done < updates:
            done += do()
        found.append(1e3 * (time.process_time() - before) / done)
    print(json.dumps(min(found)))
agent, network, batch, updates, form = json.loads(sys.argv[1])
"""
OURS = f"""{LEAST}
from optimist.studies.bench.learners import learning, random_log
work = learning(agent, random_log(network), network, batch, seeds=1)
work.do(), work.do()
least(work.do, updates)
"""
THEIRS = f"""{LEAST}
sys.path.insert(0, {str(PROGRAM.parent)!r})
import torch, peer_program
torch.set_num_threads(1)
kinds = {{"control": lambda tuned: peer_program.Td3Updates(batch, tuned)}}
table = lambda tuned: peer_program.TableUpdates(agent, network, batch, tuned)
peer = kinds.get(network, table)(form == "tuned")
for _ in range(4):
    peer.step()
least(lambda: peer.step() or 1, updates)
"""


def milliseconds(python: str, program: str, case: tuple, form: str = "") -> float:
    words = [python, "-c", program, json.dumps([*case, form])]
    return json.loads(
        subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    )


def main() -> None:
    peers = os.environ["OPTIMIST_PEERS"]
    print("network,agent,batch,library,milliseconds")
    for agent, network, batch, updates in CASES:
        case = (agent, network, batch, updates)
        found = {
            "optimist": milliseconds(sys.executable, OURS, case),
            "eager PyTorch": milliseconds(peers, THEIRS, case, "eager"),
            "tuned PyTorch": milliseconds(peers, THEIRS, case, "tuned"),
        }
        for library, cost in found.items():
            print(f"{network},{agent},{batch},{library},{cost:.2f}", flush=True)
