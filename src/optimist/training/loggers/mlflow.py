"""Figures in MLflow: one run per seed, at MLFLOW_TRACKING_URI, in the experiment MLFLOW_EXPERIMENT_NAME."""

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from optimist.envs._lanes import package
from optimist.errors import UsageError
from optimist.training.loggers._sent import Sent, configuration, title

log = logging.getLogger("optimist")


class Mlflow:
    """A continued run is the same run in MLflow. A server that is gone does not stop training."""

    def __init__(self, folder: Path, seeds: tuple[int, ...], step: int):
        self._mlflow = package("mlflow", extra="mlflow")
        self._sent = Sent(folder, "mlflow")
        try:
            self._client = self._mlflow.MlflowClient()
            for seed in seeds:
                if str(seed) in self._sent.runs:
                    self._client.update_run(self._sent.runs[str(seed)], status="RUNNING")
                else:
                    self._sent.runs[str(seed)] = self._begun(folder, seed)
        except self._mlflow.exceptions.MlflowException as problem:
            reason = str(problem).strip().partition("\n")[0][:200]
            raise UsageError(
                f"MLflow cannot begin ({reason}): set MLFLOW_TRACKING_URI to a server, or pip install mlflow"
            ) from problem
        self._sent.keep()

    def _begun(self, folder: Path, seed: int) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "optimist"
        experiment = self._client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self._client.create_experiment(name)
        run = self._client.create_run(
            number, run_name=f"{title(folder)} seed {seed}", tags={"group": title(folder)}
        )
        settings = {**configuration(folder), "seed": seed}
        parameters = [self._mlflow.entities.Param(name, str(value)) for name, value in settings.items()]
        self._client.log_batch(run.info.run_id, params=parameters)
        return run.info.run_id

    def add(self, step: int, values: Mapping[str, float], seed: int) -> None:
        news = self._sent.news(step, values, seed)
        now = int(1000 * time.time())
        rows = [self._mlflow.entities.Metric(name, value, now, step) for name, value in news.items()]
        if rows and self._done(lambda: self._client.log_batch(self._sent.runs[str(seed)], metrics=rows)):
            self._sent.note(step, news, seed)

    def close(self) -> None:
        for run in self._sent.runs.values():
            self._done(lambda run=run: self._client.set_terminated(run))

    def _done(self, call) -> bool:
        try:
            call()
        except self._mlflow.exceptions.MlflowException as problem:
            reason = str(problem).strip().partition("\n")[0][:200]
            log.warning("MLflow does not answer (%s); metrics.jsonl has every figure", reason)
            return False
        return True
