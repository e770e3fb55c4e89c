"""A SLURM cluster of this machine alone: munged, slurmctld and two slurmd on loopback, in one folder.

It needs root and Debian's packages slurm-wlm and munge (`apt-get install slurm-wlm munge`); nothing is
installed here, and no service of the machine is used or changed.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from patience import PATIENCE

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthInfo=socket={folder}/munge/socket,cred_expire=3
SlurmUser=root
SlurmdUser=root
SlurmctldPort={control}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdTimeout=8
KillWait=20
SchedulerParameters=sched_interval=1,bf_interval=1
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={one} CPUs=1 RealMemory=2000
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={two} CPUs=1 RealMemory=2000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
{more}
"""


def missing() -> list[str]:
    """What this machine lacks for such a cluster."""
    found = [name for name in PROGRAMS if not shutil.which(name)]
    return [*found, *(["root"] if os.geteuid() else [])]


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class SlurmCluster:
    """The daemons, as children of this process."""

    def __init__(self, folder: Path, more: str = ""):
        """`more` are other lines of its configuration."""
        assert not missing(), f"this machine lacks {missing()}: apt-get install slurm-wlm munge, as root"
        self.folder, self._daemons = folder, dict[str, subprocess.Popen]()
        for name in ("munge", "state", "spool-one", "spool-two"):
            (folder / name).mkdir(mode=0o711)
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        control, one, two = free_ports(3)
        words = {"host": socket.gethostname(), "folder": folder, "control": control, "one": one, "two": two}
        words["more"] = more
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(**words))

    def start(self) -> None:
        munge = self.folder / "munge"
        places = [f"--{name}={munge / name.partition('-')[0]}" for name in ("socket", "key-file", "pid-file")]
        places += [f"--log-file={munge / 'log'}", f"--seed-file={munge / 'seed'}"]
        self._begin("munged", "munged", "--force", "--foreground", *places)
        self._await(lambda: (munge / "socket").exists())
        self.start_controller()
        for node in ("one", "two"):
            self.start_node(node)
        self._await(lambda: self.asked("sinfo", "-h", "-o", "%D %t") == "2 idle")

    def start_controller(self) -> None:
        self._begin("slurmctld", "slurmctld", "-D")

    def stop_controller(self) -> None:
        self._end("slurmctld", signal.SIGKILL)

    def start_node(self, name: str) -> None:
        self._begin(name, "slurmd", "-D", "-N", name)

    def lose_node(self, name: str) -> None:
        """End everything that runs on this node, at once: the daemon first, or it would report the rest."""
        self._end(name, signal.SIGKILL)
        theirs = [
            pid for pid in _processes() if f"SLURMD_NODENAME={name}" in _read(pid, "environ").split("\0")
        ]
        jobs = {
            word
            for pid in theirs
            for word in _read(pid, "environ").split("\0")
            if word[:13] == "SLURM_JOB_ID="
        }
        stepped = [f"[{word.partition('=')[2]}." for word in jobs]
        steps = [pid for pid in _processes() if _is_step(_read(pid, "cmdline"), stepped)]
        for pid in [*steps, *theirs]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def asked(self, *command: str) -> str:
        return subprocess.run(command, env=self.variables(), capture_output=True, text=True).stdout.strip()

    def variables(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.configuration)}

    def stop(self) -> None:
        self.asked("scancel", "--user=root")
        for name in reversed(list(self._daemons)):
            self._end(name, signal.SIGTERM)

    def _begin(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("a") as output:
            streams = {"stdout": output, "stderr": output, "stdin": subprocess.DEVNULL}
            self._daemons[name] = subprocess.Popen(command, env=self.variables(), **streams)

    def _end(self, name: str, number: int) -> None:
        daemon = self._daemons.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(timeout=20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _await(self, happened) -> None:
        deadline = time.monotonic() + PATIENCE
        while not happened():
            logs = "\n".join(path.read_text()[-500:] for path in self.folder.glob("*.out"))
            assert time.monotonic() < deadline, f"the daemons did not start: {logs}"
            time.sleep(0.1)


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def _is_step(command: str, jobs: list[str]) -> bool:
    return command.startswith("slurmstepd: ") and any(job in command for job in jobs)
