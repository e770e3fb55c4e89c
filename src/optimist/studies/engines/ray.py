"""Workers on a running Ray cluster: every run is a task with its own share of cores and GPUs.

All nodes see the study's folder, and logs that existed before, under the same path, or all of them are at an
address. Nothing else is sent.
"""

import contextlib
import hashlib
import logging
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from optimist import plugins
from optimist.envs._environment import package
from optimist.envs._processes import variables
from optimist.envs.atari import ROMS
from optimist.errors import OptimistError, RunError, UsageError
from optimist.studies.engines._schedule import Ended, Remote, bring, perform_all
from optimist.studies.job import Job
from optimist.studies.status import FILE
from optimist.studies.work import LEAVING_SECONDS, modules_of, work
from optimist.training.memory import RUNS_PER_GPU, RUNS_PER_MACHINE
from optimist.training.terminal import Interrupted, StopRequest, say

__all__ = ["Options", "bring", "run"]
AHEAD = 1000  # runs in the cluster's queue, where an autoscaler sees them
LOOK_SECONDS = 0.5  # between checks for signals
AUTO = "auto"
NO_MODULES = Path(__file__).parents[1] / "catalog"  # a folder of this package without Python modules
PORT_SECONDS = 3  # for a port to open
ANSWER_SECONDS = 60  # for the cluster to answer; on a busy machine it took more than 20
QUIETLY = {"log_to_driver": False, "logging_level": logging.ERROR}  # each run writes its own log
EVERY, MISSES = 2.0, 5  # seconds between looks at the head, and looks in a row without an answer

# The attempt runs in a separate process: Ray's output and its number of retries cannot be set.
ATTEMPT = f"""
import sys, ray
try:
    ray.init(address=sys.argv[1], **{QUIETLY})
except Exception as problem:
    print(" ".join(str(problem).split()))
    sys.exit(1)
"""


@dataclass(frozen=True)
class Options(Remote):
    address: Annotated[str, "HOST:PORT of the head; auto is RAY_ADDRESS, or the local cluster"] = AUTO
    cpus_per_run: Annotated[float, "cores of each run"] = 1.0
    gpus_per_run: Annotated[float, "GPUs of each run; at 0.5 two runs share one"] = 0.0

    def __post_init__(self):
        super().__post_init__()
        gpus = self.gpus_per_run
        if self.cpus_per_run <= 0:
            raise UsageError(f"cpus_per_run is {self.cpus_per_run:g}: it must be above 0")
        if gpus < 0 or (gpus > 1 and gpus != int(gpus)):
            raise UsageError(f"gpus_per_run is {gpus:g}: it must be from 0 to 1, or a whole number")


def run(jobs: list[Job], out: Path, options: Options) -> None:
    """Run the jobs on any nodes with room."""
    perform_all(jobs, out, RayPool(out, options))


class RayPool:
    """A pool whose runs go to any node with room. If a node is lost, the engine starts its runs on another
    node, where they continue from their last checkpoints."""

    keeps_order = False

    def __init__(self, out: Path, options: Options):
        self._ray: Any = package("ray", extra="ray")
        connect(self._ray, options.address)
        self._watch = Watch(self._ray.get_runtime_context().gcs_address)
        self._out = out.absolute()  # not resolved: a link may have another target on another node
        self._options, self._place = options, options.place
        cpus, gpus = options.cpus_per_run, options.gpus_per_run
        # Ray must not retry by itself: the engine counts the attempts.
        self._task = self._ray.remote(max_retries=0, num_cpus=cpus, num_gpus=gpus)(_perform)
        self._running: dict[Any, Job] = {}
        # Ray waits silently for a node that is large enough.
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
            say(f"no node has the {cpus:g} cores and {gpus:g} GPUs of a run: all runs wait until one joins")
        if not gpus and any(node.get("GPU", 0) for node in nodes):
            say("the cluster has GPUs that no run uses: with --gpus-per-run 0.33 three runs share one")
        # Signals are handled between waits: inside `ray.wait` Ray turns them into other errors.
        self._stop = StopRequest().__enter__()

    def free(self) -> int:
        return AHEAD - len(self._running)

    def start(self, jobs: list[Job]) -> None:
        if jobs and self._place:
            self._place.send_file(FILE, self._out)
        study, options = self._options.store or str(self._out), self._options
        mark = "" if options.store else _mark_of(self._out)
        roms = str(Path(os.environ[ROMS]).absolute()) if os.environ.get(ROMS) else ""
        for job in jobs:
            allowed = modules_of(job)  # the user's own command named them
            task = self._task.remote(study, mark, job.name, job.restart, allowed, options, roms)
            self._running[task] = job

    def wait(self) -> list[Ended]:
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=LOOK_SECONDS)
        self._stop.leave(f"{len(self._running)} runs")
        return [self._ended(task) for task in ready]

    def _ended(self, task: Any) -> Ended:
        job, problems = self._running.pop(task), self._ray.exceptions
        try:
            complaint = self._ray.get(task)
            if self._place:
                self._place.bring(job.name, self._out / job.name, exactly=True)
            return Ended(job, complaint)
        except problems.RayTaskError as problem:  # for example, its module could not be imported there
            return Ended(job, str(problem).strip().splitlines()[-1])
        except problems.RayError as problem:
            if isinstance(problem, problems.LocalRayletDiedError) or not self._watch.answers():
                self._running.clear()  # no run is left that could save and stop
                raise self._watch.stopped() from problem
            return Ended(job, f"its node or worker was lost ({type(problem).__name__})", worker_died=True)

    def close(self) -> None:
        """Cancel queued runs; ask active runs to save and stop, as Ctrl-C does."""
        try:
            leaving = list(self._running)
            for task in leaving:
                self._ray.cancel(task)
            if leaving:
                self._ray.wait(leaving, num_returns=len(leaving), timeout=LEAVING_SECONDS)
        finally:
            self._watch.close()
            self._stop.__exit__()
            self._ray.shutdown()


def _mark_of(out: Path) -> str:
    """A hash of study.json: on a node without the shared disk it differs or is empty."""
    try:
        return hashlib.sha256((out / FILE).read_bytes()).hexdigest()
    except OSError:
        return ""


def _perform(
    study: str, mark: str, name: str, restart: bool, allowed: list[str], options: Options, roms: str
) -> str:
    """The task on a node: run the job; return its error, or ""."""
    import ray

    apply(environment(options) | ({ROMS: roms} if roms else {}))
    # How many runs with these shares this node has room for: they also share its memory.
    here = ray.get_runtime_context().get_node_id()
    [node] = [node["Resources"] for node in ray.nodes() if node["NodeID"] == here]
    shares = {"CPU": options.cpus_per_run, "GPU": options.gpus_per_run}
    room = [node.get(kind, share) / share for kind, share in shares.items() if share]
    os.environ[RUNS_PER_MACHINE] = str(max(1, int(min(room))))
    if mark and _mark_of(Path(study)) != mark:
        return (
            f"{socket.gethostname()} does not see the study in {study}: choose an --out that all nodes "
            "share, or a --store"
        )
    plugins.allow(allowed)
    try:
        work(study, run=name, restart=restart, scratch=options.scratch_folder)
    except Interrupted:  # it saved and stopped on request; Ray would report a crash
        raise KeyboardInterrupt from None
    except OptimistError as problem:
        return str(problem).removeprefix(f"{name}: ")
    return ""


def environment(options: Options) -> dict[str, str]:
    """Environment variables of a run's process."""
    settings = {"NPROC": str(max(1, int(options.cpus_per_run)))}  # threads of XLA; by default one a core
    if not options.gpus_per_run:
        settings["JAX_PLATFORMS"] = "cpu"  # Ray shows all GPUs of the node to a task that asked for none
    elif options.gpus_per_run < 1:
        settings[RUNS_PER_GPU] = str(int(1 / options.gpus_per_run))
        settings["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # or the first run takes all of its memory
    return settings


def apply(environment: dict[str, str]) -> None:
    """Apply a run's environment variables in its process, which has imported JAX but not used it."""
    import jax

    os.environ.update(environment)
    if "JAX_PLATFORMS" in environment:
        jax.config.update("jax_platforms", environment["JAX_PLATFORMS"])  # JAX read the variable before


def connect(ray: Any, address: str) -> None:
    """Make this process a driver of the cluster at HOST:PORT; "auto" is RAY_ADDRESS, or the local one. Fail
    with one line within seconds; Ray itself retries for minutes."""
    address = os.environ.get("RAY_ADDRESS") or AUTO if address == AUTO else address
    if address != AUTO:
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isdecimal()) or "/" in host:
            raise UsageError(f'"{address}" is not the address of a cluster: write HOST:PORT of its head')
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PORT_SECONDS).close()
        except (OSError, OverflowError) as problem:
            raise _refused(address, str(getattr(problem, "strerror", None) or problem)) from problem
    check_cluster(address)
    # Ray's workers import modules from the driver's working directory.
    with contextlib.chdir(NO_MODULES):
        ray.init(address=address, **QUIETLY)


def check_cluster(address: str) -> None:
    """Raise UsageError if a process cannot become a driver of this cluster."""
    command = [sys.executable, "-c", ATTEMPT, address]
    try:
        attempt = subprocess.run(
            command, cwd=NO_MODULES, env=variables(), capture_output=True, text=True, timeout=ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired as problem:
        raise _refused(address, f"no answer within {ANSWER_SECONDS} s") from problem
    if attempt.returncode:
        raise _refused(address, attempt.stdout.strip()[:300] or f"code {attempt.returncode}")


def _refused(address: str, reason: str) -> UsageError:
    if address == AUTO:
        return UsageError(
            "no Ray cluster runs here: start one with ray start --head, or name one with --address"
        )
    return UsageError(
        f"cannot connect to a Ray cluster at {address} ({reason.rstrip('.')}): "
        "give HOST:PORT of its head, and run this on one of its nodes"
    )


class Watch:
    """A thread that looks whether the head of the cluster answers. If it does not, one line is printed and
    the process ends: calls of Ray do not return any more, and after a minute Ray ends the process itself."""

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
