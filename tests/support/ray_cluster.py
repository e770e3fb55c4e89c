"""A Ray cluster of this machine alone: a head that only manages, and two nodes with room for one run each."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from optimist.studies.engines import ray
from patience import PATIENCE

SMALL = {"object_store_memory": 80 * 2**20}
QUICK = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}  # a lost node is noticed soon
# A worker has long to start, and none is killed because the memory of the machine is short.
PATIENT = {"worker_register_timeout_seconds": PATIENCE, "memory_monitor_refresh_ms": 0}
STARTING = 30  # seconds that Ray gives a node

# The command line, which waits for the answer of a busy cluster.
COMMAND = f"""
import sys
from optimist.cli.main import main
from optimist.studies.engines import ray
ray.ANSWER_SECONDS = {PATIENCE}
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def ray_cluster() -> Iterator[Any]:
    """Its processes inherit the variables of this process. Ray keeps to a folder of ours."""
    folder = tempfile.mkdtemp(prefix="ray-")  # the names of its sockets must be short
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setattr(ray, "ANSWER_SECONDS", PATIENCE)
        cluster = ray_head(num_cpus=0, _system_config=QUICK | PATIENT)
        try:
            for _ in range(2):
                add_node(cluster)
            yield cluster
        finally:
            cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def ray_head(**options: Any) -> Any:
    """A cluster of one node."""
    from ray.cluster_utils import Cluster

    with _slow_clock():
        return Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **SMALL, **options})


def add_node(cluster: Any) -> None:
    with _slow_clock():
        cluster.add_node(num_cpus=1, **SMALL)


@contextmanager
def _slow_clock() -> Iterator[None]:
    """A busy machine takes longer to start a node than Ray's limit, for which there is no setting."""
    factor, wall, monotonic = STARTING / PATIENCE, time.time(), time.monotonic()
    slow = SimpleNamespace(**vars(time))
    slow.time = lambda: wall + factor * (time.time() - wall)
    slow.monotonic = lambda: monotonic + factor * (time.monotonic() - monotonic)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("node", "services"):
            patch.setattr(f"ray._private.{module}.time", slow)
        yield
