"""A Ray cluster of this machine alone: a head that only manages, and two nodes with room for one run each."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SMALL = {"object_store_memory": 80 * 2**20}


@contextmanager
def ray_cluster() -> Iterator[Any]:
    """Its processes inherit the variables of this process. Ray keeps to a folder of ours."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray-")  # the names of its sockets must be short
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        quick = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": quick, **SMALL}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            cluster.add_node(num_cpus=1, **SMALL)
        try:
            yield cluster
        finally:
            cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)
