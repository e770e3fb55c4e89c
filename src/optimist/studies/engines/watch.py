"""Notices that a Ray cluster has stopped. Ray itself waits for a minute and then ends the process."""

import os
import socket
import sys
import threading

from optimist.errors import RunError

EVERY, MISSES = 2.0, 5  # seconds between looks, and looks in a row without an answer


class Watch:
    """A thread that looks whether the head of the cluster answers. If it does not, one line is printed and
    the process ends, because calls of Ray do not return any more."""

    def __init__(self, address: str):
        self._host, _, port = address.rpartition(":")
        self._port, self._over = int(port), threading.Event()
        threading.Thread(target=self._look, name="cluster", daemon=True).start()

    def close(self) -> None:
        self._over.set()

    def _look(self) -> None:
        missed = 0
        while missed < MISSES:
            if self._over.wait(EVERY):
                return
            missed = 0 if self.answers() else missed + 1
        print(f"optimist: {self.stopped()}", file=sys.stderr, flush=True)
        os._exit(RunError.exit_code)

    def answers(self) -> bool:
        try:
            socket.create_connection((self._host.strip("[]"), self._port), timeout=EVERY).close()
        except OSError:
            return False
        return True

    def stopped(self) -> RunError:
        return RunError(
            f"the Ray cluster at {self._host}:{self._port} has stopped; what the runs saved is kept: "
            "start a cluster, and the same command continues"
        )
