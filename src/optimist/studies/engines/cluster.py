"""Workers on a running Ray cluster: every run is a task with its own share of cores and GPUs.

All nodes see the study's folder, and logs that existed before, under the same path, or all of them are at an
address. Nothing else is sent.
"""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from optimist.envs._lanes import package
from optimist.envs.atari import ROMS
from optimist.errors import UsageError
from optimist.studies.engines.connection import connect
from optimist.studies.engines.engine import Ended
from optimist.studies.engines.local import PATIENCE
from optimist.studies.engines.places import Address, LocalCopy, SharedFolder, mark_of
from optimist.studies.engines.watch import Watch
from optimist.studies.engines.work import LEAVING_SECONDS
from optimist.studies.job import Job
from optimist.studies.store import is_address
from optimist.training.memory import RUNS_PER_GPU, RUNS_PER_MACHINE
from optimist.training.terminal import Interrupted, StopRequest, say

AHEAD = 1000  # runs in the cluster's queue, where an autoscaler sees them


class RayPool:
    """A pool whose runs go to any node with room. If a node is lost, the engine starts its runs on another
    node, where they continue from their last checkpoints."""

    keeps_order = False

    def __init__(
        self, out: Path, address: str = "auto", cpus: float = 1, gpus: float = 0, store: Address | None = None
    ):
        _check_shares(cpus, gpus)
        self._ray: Any = package("ray", extra="ray")
        connect(self._ray, address)
        self._watch = Watch(self._ray.get_runtime_context().gcs_address)
        self._out = out.absolute()  # not resolved: a link may have another target on another node
        self._store, self._copy = store, LocalCopy(store.address, self._out) if store else None
        self._environment, self._shares = _environment(cpus, gpus), (cpus, gpus)
        # Ray must not retry by itself: the engine counts the attempts.
        self._task = self._ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=0)(_perform)
        self._running: dict[Any, Job] = {}
        self._report_resources(cpus, gpus)
        # Signals are handled between waits: inside `ray.wait` Ray turns them into other errors.
        self._stop = StopRequest().__enter__()

    def _report_resources(self, cpus: float, gpus: float) -> None:
        """Report missing or unused resources: Ray waits silently for a node that is large enough."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
            say(f"no node has the {cpus:g} cores and {gpus:g} GPUs of a run: all runs wait until one joins")
        if not gpus and any(node.get("GPU", 0) for node in nodes):
            say("the cluster has GPUs that no run uses: with --gpus-per-run 0.33 three runs share one")

    def free(self) -> int:
        return AHEAD - len(self._running)

    def start(self, jobs: list[Job]) -> None:
        if jobs and self._copy:
            self._copy.send_list()
        place = self._store or SharedFolder(self._out, mark_of(self._out))
        for job in jobs:
            self._running[self._sent(job, place)] = job

    def _sent(self, job: Job, place: Address | SharedFolder) -> Any:
        here = job.data and not is_address(job.data)  # an address is staged on the node
        sent = replace(job, data=str(job.data_folder(self._out).absolute())) if here else job
        # The jobs it needs are done, and its data is an absolute path, so the worker need not know them.
        plain = replace(sent, needs=()).as_json()
        return self._task.remote(plain, place, self._environment, self._shares)

    def wait(self) -> list[Ended]:
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=PATIENCE)
        self._stop.leave(f"{len(self._running)} runs")
        return [self._ended(task) for task in ready]

    def _ended(self, task: Any) -> Ended:
        job, problems = self._running.pop(task), self._ray.exceptions
        try:
            complaint, seconds = self._ray.get(task)
            if self._copy:
                self._copy.bring(job.name)
            return Ended(job, complaint, seconds=seconds)
        except problems.RayTaskError as problem:  # for example, its log could not be opened
            return Ended(job, str(problem).strip().splitlines()[-1])
        except problems.RayError as problem:
            if isinstance(problem, problems.LocalRayletDiedError) or not self._watch.answers():
                self._running.clear()  # no run is left that could save and stop
                raise self._watch.stopped() from problem
            return Ended(job, f"its node or worker was lost ({type(problem).__name__})", worker_died=True)

    def close(self) -> None:
        """Cancel queued runs; ask active runs to save and stop, as Ctrl-C does."""
        try:
            for task in self._running:
                self._ray.cancel(task)
            leaving = list(self._running)
            if leaving:
                self._ray.wait(leaving, num_returns=len(leaving), timeout=LEAVING_SECONDS)
        finally:
            self._watch.close()
            self._stop.__exit__()
            self._ray.shutdown()


def _check_shares(cpus: float, gpus: float) -> None:
    if cpus <= 0:
        raise UsageError(f"--cpus-per-run {cpus:g}: it must be above 0")
    if gpus < 0 or (gpus > 1 and gpus != int(gpus)):
        raise UsageError(f"--gpus-per-run {gpus:g}: it must be from 0 to 1, or a whole number")


def _environment(cpus: float, gpus: float) -> dict[str, str]:
    """Environment variables of a run's process."""
    variables = {"NPROC": str(max(1, int(cpus)))}  # threads of XLA; by default one for every core
    if not gpus:
        variables["JAX_PLATFORMS"] = "cpu"  # Ray shows all GPUs of the node to a task that asked for none
    elif gpus < 1:
        variables[RUNS_PER_GPU] = str(int(1 / gpus))
        variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # or the first run takes all of the GPU's memory
    if os.environ.get(ROMS):
        variables[ROMS] = str(Path(os.environ[ROMS]).absolute())
    return variables


def _settle(environment: dict[str, str]) -> None:
    """Apply a run's environment variables in its process, which has imported JAX but not used it."""
    os.environ.update(environment)
    if "JAX_PLATFORMS" in environment:
        jax.config.update("jax_platforms", environment["JAX_PLATFORMS"])  # JAX read the variable before


def _runs_per_node(cpus: float, gpus: float) -> int:
    """How many runs with these shares this node has room for: they also share its memory."""
    import ray

    here = ray.get_runtime_context().get_node_id()
    [node] = [node["Resources"] for node in ray.nodes() if node["NodeID"] == here]
    room = [node.get("CPU", cpus) / cpus, *([node.get("GPU", gpus) / gpus] if gpus else [])]
    return max(1, int(min(room)))


def _perform(
    job: str, place: Address | SharedFolder, environment: dict[str, str], shares: tuple[float, float]
) -> tuple[str, float]:
    """The task on a node: run the job; return its error, or "", and the seconds it took."""
    _settle({**environment, RUNS_PER_MACHINE: str(_runs_per_node(*shares))})
    begun = time.monotonic()
    try:
        complaint = place.performed(Job.from_json(job))
    except (SystemExit, Interrupted):  # it saved and stopped on request; Ray would report a crash
        raise KeyboardInterrupt from None
    return complaint, time.monotonic() - begun
