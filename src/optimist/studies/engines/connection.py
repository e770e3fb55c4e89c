"""Joins a Ray cluster, or says within seconds why not: Ray itself tries for minutes, and not in one line."""

import contextlib
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from optimist.envs._processes import variables
from optimist.errors import UsageError

AUTO = "auto"
NO_MODULES = Path(__file__).parents[1] / "catalog"  # a folder of ours with nothing that could be imported
PORT_SECONDS = 3  # for a port to open
ANSWER_SECONDS = 20  # for what stands behind it to answer as a cluster; a busy one takes a few
QUIETLY = {"log_to_driver": False, "logging_level": logging.ERROR}  # runs have logs of their own

# In a process of its own, as what Ray prints and how long it tries cannot be chosen.
ATTEMPT = f"""
import sys, ray
try:
    ray.init(address=sys.argv[1], **{QUIETLY})
except Exception as problem:
    print(" ".join(str(problem).split()))
    sys.exit(1)
"""


def connect(ray: Any, address: str) -> None:
    """Make this process a driver of the cluster at HOST:PORT; "auto" is RAY_ADDRESS, or the one here."""
    address = os.environ.get("RAY_ADDRESS") or AUTO if address == AUTO else address
    if address != AUTO:
        _check_port(address)
    _check_cluster(address)
    # Ray has its workers search the folder that its driver is in.
    with contextlib.chdir(NO_MODULES):
        ray.init(address=address, **QUIETLY)


def _check_port(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal()) or "/" in host:
        raise UsageError(f'"{address}" is no address of a cluster: write HOST:PORT of its head')
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PORT_SECONDS).close()
    except (OSError, OverflowError) as problem:
        raise _refused(address, str(getattr(problem, "strerror", None) or problem)) from problem


def _check_cluster(address: str) -> None:
    command = [sys.executable, "-c", ATTEMPT, address]
    try:
        tried = subprocess.run(
            command, cwd=NO_MODULES, env=variables(), capture_output=True, text=True, timeout=ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired as problem:
        raise _refused(address, f"what is there said nothing for {ANSWER_SECONDS} s") from problem
    if tried.returncode:
        raise _refused(address, tried.stdout.strip()[:300] or f"code {tried.returncode}")


def _refused(address: str, reason: str) -> UsageError:
    if address == AUTO:
        return UsageError("no Ray cluster runs here: begin one by ray start --head, or name one by --address")
    return UsageError(
        f"no Ray cluster takes us at {address} ({reason.rstrip('.')}): "
        "name its head, HOST:PORT, and run this on one of its nodes"
    )
