"""The core runs on macOS and Windows: it needs no call that only Linux has.

A child process hides the calls from Optimist, then records, trains and evaluates. What remains
of the operating system is Linux, so this is no proof for macOS or Windows; it finds a call without a guard.
"""

import subprocess
import sys

from patience import PATIENCE

ONLY_LINUX = {
    "os": """sched_getaffinity sched_setaffinity process_cpu_count posix_fadvise posix_fallocate memfd_create
        eventfd copy_file_range splice pidfd_open getxattr setxattr O_DIRECT O_TMPFILE O_PATH getrandom""",
    "select": "epoll",
    "signal": "pidfd_send_signal sigtimedwait sigwaitinfo",
    "mmap": "MADV_HUGEPAGE MAP_POPULATE",
}
ONLY_UNIX = {
    "os": """sysconf sysconf_names fork forkpty getuid geteuid getgid pread pwrite preadv readv statvfs
        fstatvfs killpg setsid getpgid O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_CLOEXEC uname getloadavg nice
        wait3 wait4 mkfifo sync fdatasync chown chroot""",
    "select": "poll",
    "signal": "SIGBUS SIGKILL SIGHUP SIGUSR1 SIGALRM alarm setitimer pthread_kill sigwait",
    "mmap": "PROT_READ PROT_WRITE MAP_SHARED MAP_PRIVATE",
}
HIDDEN = {module: f"{ONLY_LINUX[module]} {ONLY_UNIX[module]}".split() for module in ONLY_LINUX}
HIDDEN_MODULES = ["fcntl", "resource", "pwd", "grp", "termios"]

# Libraries have guards of their own, by sys.platform. Those that are imported first keep the real modules.
HIDE = """
import ctypes, importlib, sys, types
import filelock, gymnasium.envs.classic_control, jax, multiprocessing.connection, pyarrow
import rich.progress, safetensors.numpy, shutil, tensorboardX, zstandard
for name, hidden in {hidden!r}.items():
    rest = types.ModuleType(name)
    vars(rest).update({{key: value for key, value in vars(sys.modules[name]).items() if key not in hidden}})
    sys.modules[name] = rest
for name in {modules!r}:
    sys.modules[name] = None
def no_library(*_):
    raise TypeError("there is no library without a name")
ctypes.CDLL = no_library
"""
CORE = """
import gymnasium, optimist, optimist.cli.main
from optimist.data import machine
from optimist.envs import _workers
assert machine.memory() == machine.ASSUMED_MEMORY and machine.cores() >= 1
assert _workers.usual_processes(1000) == 1
env = optimist.record(gymnasium.make("CartPole-v1"), {out!r} + "/data")
env.reset(seed=0)
for step in range(150):
    _, _, terminal, truncated, _ = env.step(step % 2)
    if terminal or truncated:
        env.reset()
env.close()
data = optimist.open({out!r} + "/data")
run = optimist.train("dqn", data, steps=20, out={out!r} + "/run")
assert run.policy(data.observation(0)) in (0, 1)
for words in (["data", "verify", {out!r} + "/data"], ["evaluate", {out!r} + "/run", "--episodes", "4"]):
    assert optimist.cli.main.main(words) == 0, words
print("reached the end")
"""


def test_the_core_runs_without_the_calls_of_linux(tmp_path):
    script = HIDE.format(hidden=HIDDEN, modules=HIDDEN_MODULES) + CORE.format(out=str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    assert "reached the end" in ended.stdout
