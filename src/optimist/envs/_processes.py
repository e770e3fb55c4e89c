"""Starting child processes that do not import from the current folder, and that end with their parent.

The current folder may hold files that the user does not trust. An interpreter puts it first on its search
path unless it runs a script, so a `json.py` there would replace the library's.
"""

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping

from optimist.plugins import search_path

SAFELY = "-P"  # option of the interpreter: do not search the current folder
VARIABLE = "PYTHONSAFEPATH"  # the same for an interpreter whose command line we cannot change
PATIENCE = 0.5  # seconds between checks of the parent
LEAVING_SECONDS = 30  # to save; Python sees no signal while XLA compiles


def variables() -> dict[str, str]:
    """The environment variables of a child process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(search_path())}


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Processes that multiprocessing starts inside this context do not import from the current folder.

    multiprocessing gives its children the search path of this process; their command line is fixed."""
    path = sys.path
    sys.path = search_path()
    try:
        with setting({VARIABLE: "1"}):
            yield
    finally:
        sys.path = path


@contextlib.contextmanager
def setting(environment: Mapping[str, str]) -> Iterator[None]:
    """Processes that are started inside this context have these environment variables."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def serve(parent: int, module: str, function: str, *arguments) -> None:
    """The first function of a child: tie it to its parent, then import `module`, which may take seconds."""
    leave_with(parent)
    getattr(importlib.import_module(module), function)(*arguments)


def leave_with(parent: int) -> None:
    """Have SIGTERM sent to this process when its parent ends, for whatever reason, and SIGKILL if it is still
    there much later.

    The parent passes its own id: if it has ended already, os.getppid() is another process."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PATIENCE)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(LEAVING_SECONDS)
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has only the second

    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Thread(target=watch, daemon=True).start()
