"""SLURM's own commands: which jobs are in its queue, and how to cancel them."""

import getpass
import re
import subprocess
from collections.abc import Collection

from optimist.errors import UsageError

ANSWER_SECONDS = 60  # a busy controller takes long
MAX_ARRAY = 1001  # SLURM's default of MaxArraySize


def answer(*command: str) -> str:
    """The output of one of SLURM's commands; UsageError in one line if it fails."""
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS)
    except FileNotFoundError:
        raise UsageError(
            f"{command[0]} is not installed: run this on a node of a SLURM cluster, such as its login node"
        ) from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"SLURM does not answer {command[0]} within {ANSWER_SECONDS} s: try again") from None
    if asked.returncode:
        reason = " ".join(asked.stderr.split()) or f"code {asked.returncode}"
        raise UsageError(f"SLURM refuses {command[0]}: {reason}")
    return asked.stdout


def queued() -> set[str]:
    """The user's jobs that wait, run or are just ending: "12", or "12_3" in an array."""
    return set(
        answer("squeue", "--noheader", "--array", "--format=%i", f"--user={getpass.getuser()}").split()
    )


def cancel(jobs: Collection[str]) -> None:
    """Cancel these jobs; those that run get SIGTERM and some time to save."""
    if jobs:
        answer("scancel", "--quiet", *jobs)


def largest_array() -> int:
    """The number of jobs that one array may have."""
    found = re.search(r"MaxArraySize\s*=\s*(\d+)", answer("scontrol", "show", "config"))
    return max(1, (int(found[1]) if found else MAX_ARRAY) - 1)
