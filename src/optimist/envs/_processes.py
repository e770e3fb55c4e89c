"""How child processes are started: without the modules of the current folder, and so that they end with the
process that started them.

The current folder may hold anybody's files. An interpreter puts it in front of its search path unless it is
started by the name of a script, so a `json.py` there would be run in place of the library's.
"""

import contextlib
import ctypes
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

from optimist.plugins import search_path

SAFELY = "-P"  # for the interpreter: the current folder is not searched
VARIABLE = "PYTHONSAFEPATH"  # says the same to an interpreter whose command is not ours
PR_SET_PDEATHSIG = 1  # of Linux' prctl
PATIENCE = 0.5  # seconds between looks at the parent, where the kernel does not tell


def variables() -> dict[str, str]:
    """For a child's environment."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(search_path())}


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Processes that multiprocessing starts in here do without the current folder's modules.

    It hands its children this process's own search path, and leaves their command to nobody."""
    path, variable = sys.path, os.environ.get(VARIABLE)
    sys.path, os.environ[VARIABLE] = search_path(), "1"
    try:
        yield
    finally:
        sys.path = path
        if variable is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = variable


def serve(parent: int, module: str, function: str, *arguments) -> None:
    """What a child does first. Only afterwards it imports what it works with, which may take seconds."""
    leave_with(parent)
    getattr(importlib.import_module(module), function)(*arguments)


def leave_with(parent: int) -> None:
    """Have SIGTERM sent to this process when its parent ends, in whatever way.

    The parent says who it is: whoever asks only now may be told who adopted the child."""
    if not _kernel_tells():
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    elif os.getppid() != parent:  # it ended before the kernel was asked
        os.kill(os.getpid(), signal.SIGTERM)


def _kernel_tells() -> bool:
    try:
        return ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) == 0
    except (AttributeError, OSError):
        return False


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PATIENCE)
    os.kill(os.getpid(), signal.SIGTERM)
