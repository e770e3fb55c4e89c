"""Connects to a Ray cluster, or fails with one line within seconds; Ray itself retries for minutes."""

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
NO_MODULES = Path(__file__).parents[1] / "catalog"  # a folder of this package without Python modules
PORT_SECONDS = 3  # for a port to open
ANSWER_SECONDS = 60  # for the cluster to answer; on a busy machine it took more than 20
QUIETLY = {"log_to_driver": False, "logging_level": logging.ERROR}  # each run writes its own log

# The attempt runs in a separate process: Ray's output and its number of retries cannot be set.
ATTEMPT = f"""
import sys, ray
try:
    ray.init(address=sys.argv[1], **{QUIETLY})
except Exception as problem:
    print(" ".join(str(problem).split()))
    sys.exit(1)
"""


def connect(ray: Any, address: str) -> None:
    """Make this process a driver of the cluster at HOST:PORT; "auto" is RAY_ADDRESS, or the local one."""
    address = os.environ.get("RAY_ADDRESS") or AUTO if address == AUTO else address
    if address != AUTO:
        _check_port(address)
    _check_cluster(address)
    # Ray's workers import modules from the driver's working directory.
    with contextlib.chdir(NO_MODULES):
        ray.init(address=address, **QUIETLY)


def _check_port(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal()) or "/" in host:
        raise UsageError(f'"{address}" is not the address of a cluster: write HOST:PORT of its head')
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
        raise _refused(address, f"no answer within {ANSWER_SECONDS} s") from problem
    if tried.returncode:
        raise _refused(address, tried.stdout.strip()[:300] or f"code {tried.returncode}")


def _refused(address: str, reason: str) -> UsageError:
    if address == AUTO:
        return UsageError(
            "no Ray cluster runs here: start one with ray start --head, or name one with --address"
        )
    return UsageError(
        f"cannot connect to a Ray cluster at {address} ({reason.rstrip('.')}): "
        "give HOST:PORT of its head, and run this on one of its nodes"
    )
