"""What a SLURM job of a study runs: `optimist study work` in a process of its own.

This module imports nothing heavy: submitit loads it on the node only to start that process. When the time
limit is near, SLURM sends SIGUSR2 to all processes of the job. submitit then calls `checkpoint` and puts the
job into the queue again.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Task:
    """One run of a study, which can be stopped and continued."""

    words: tuple[str, ...]  # after `optimist study work`
    folder: str  # its working directory, because logs may have relative paths
    _child: "subprocess.Popen | None" = field(default=None, repr=False)

    def __call__(self) -> None:
        command = [sys.executable, "-P", "-m", "optimist", "study", "work", *self.words]
        before = signal.signal(
            signal.SIGUSR2, signal.SIG_IGN
        )  # the child inherits this, or it would be killed
        self._child = subprocess.Popen(command, cwd=self.folder)
        signal.signal(signal.SIGUSR2, before)
        self._wait()
        if code := self._child.wait():
            raise SystemExit(code)

    def _wait(self) -> None:
        """Wait for the child, without the lock of Popen.wait: `checkpoint` interrupts this and waits too."""
        assert self._child is not None
        os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)

    def checkpoint(self) -> Any:
        """Have the run saved; return what is to be run when the job starts again."""
        from submitit.helpers import DelayedSubmission

        if self._child is not None:
            self._child.terminate()
            self._wait()
        return DelayedSubmission(Task(self.words, self.folder))
