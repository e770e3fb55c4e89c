"""An S3 server of this machine alone: moto's, in a process of its own, with one bucket."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from patience import PATIENCE
from slurm_cluster import free_ports


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of an empty bucket; s3fs finds the server by the variables that boto reads.

    OPTIMIST_MOTO is a Python that has moto[server]: in the same one tensorboardX would import its boto3 in
    every run."""
    python = os.environ.get("OPTIMIST_MOTO", sys.executable)
    there = subprocess.run([python, "-c", "import moto.server"], capture_output=True).returncode == 0
    assert there, 'set OPTIMIST_MOTO to a Python that has moto: pip install "moto[server]"'
    [port] = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    variables = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    words = [python, "-P", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        forget_stores()
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                _await(f"{address}/moto-api/")
                request = urllib.request.Request(f"{address}/studies", method="PUT")
                request.add_header("Host", f"127.0.0.1:{port}")
                urllib.request.urlopen(request).close()
                yield "s3://studies"
            finally:
                process.terminate()
                forget_stores()


def forget_stores() -> None:
    """fsspec keeps its stores, and each the address of its server."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


def _await(address: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(address).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.1)
