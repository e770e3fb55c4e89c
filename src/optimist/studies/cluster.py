"""Workers on a Ray cluster that exists already. The study's folder must be the same path on every node."""

from pathlib import Path
from typing import Any

from optimist.envs._lanes import package
from optimist.errors import UsageError
from optimist.studies.engine import Ended
from optimist.studies.job import Job
from optimist.studies.local import PATIENCE, performed

AHEAD = 1000  # jobs handed to the cluster at once; it queues those that find no room


class RayPool:
    """Every job a task with its own share of cores and devices. Where a node is lost, its tasks are begun
    again elsewhere by the engine, and go on from their last checkpoints."""

    def __init__(self, out: Path, address: str, cpus: float = 1, gpus: float = 0):
        self._ray: Any = package("ray", extra="ray")
        try:
            self._ray.init(address=address, log_to_driver=False, logging_level="error")
        except (ConnectionError, ValueError, RuntimeError) as problem:
            raise UsageError(
                f'no Ray cluster answers at "{address}": start it by ray start --head, or leave --address out'
            ) from problem
        # The engine decides what is tried again, as it does for processes.
        self._task = self._ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=0)(_perform)
        self._out = out.resolve()
        self._running: dict[Any, Job] = {}

    def free(self) -> int:
        return AHEAD - len(self._running)

    def start(self, job: Job) -> None:
        self._running[self._task.remote(job.as_json(), str(self._out))] = job

    def wait(self) -> list[Ended]:
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=PATIENCE)
        return [self._ended(reference) for reference in ready]

    def _ended(self, reference: Any) -> Ended:
        job = self._running.pop(reference)
        try:
            return Ended(job, self._ray.get(reference))
        except self._ray.exceptions.RayError as problem:
            return Ended(job, f"its node or worker was lost ({type(problem).__name__})", worker_died=True)

    def close(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference)
        self._ray.shutdown()


def _perform(job: str, out: str) -> str:
    return performed(Job.from_json(job), Path(out))
