"""Calls in which machines differ: cores, memory, the user's folders, and files that reach the disk."""

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CACHE = "XDG_CACHE_HOME"
ASSUMED_MEMORY = 8 * 2**30  # bytes, where the system does not say how much it has
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # flag of os.open: fail if the file is a link
NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # flag of os.open: a pipe without a writer does not block


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """The bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf; a sandbox may refuse to answer
        return ASSUMED_MEMORY


def with_home(path: str | os.PathLike[str]) -> str:
    """The path with the home folder in place of a ~ at its beginning, as a shell has it."""
    text = os.fspath(path)
    return os.path.expanduser(text) if text == "~" or text.startswith("~/") else text


def cache_folder() -> Path:
    """The folder of everything that can be made again."""
    return Path(os.environ.get(CACHE) or Path.home() / ".cache") / "optimist"


def sync(descriptor: int) -> None:
    """Return when the file is on the disk. On macOS fsync leaves it in the memory of the drive."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined]
    except (AttributeError, OSError):  # another system, or a file system that does not know this call
        os.fsync(descriptor)


def sync_file(path: str | os.PathLike[str]) -> None:
    """Return when the file is on the disk."""
    descriptor = os.open(path, os.O_RDWR)  # Windows syncs no file that is open for reading only
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Return when the names in the folder are on the disk. Windows cannot open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
