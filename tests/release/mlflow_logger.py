"""Figures in MLflow's own file store: each once, also of a continued run."""

import mlflow
import pytest

from optimist.errors import UsageError
from optimist.training.loggers.mlflow import Mlflow


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no other store of its own
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    return mlflow.MlflowClient()


def test_a_continued_run_is_the_same_run_and_logs_nothing_twice(client, tmp_path):
    folder = tmp_path / "study" / "run"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[agent]\nname = "rem"\n')
    for begins, steps in ((0, (10, 20)), (10, (20, 30))):
        logger = Mlflow(folder, seeds=(4, 9), step=begins)
        for step in steps:
            for seed in (4, 9):
                logger.add(step, {"loss": step / 2 + seed}, seed)
                logger.add(step, {"play/return": float(step)}, seed)
        logger.close()
    experiment = client.get_experiment_by_name("optimist")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["study/run seed 4", "study/run seed 9"]
    for seed in (4, 9):
        run = runs[f"study/run seed {seed}"]
        assert run.data.params == {"agent.name": "rem", "seed": str(seed)}
        assert run.info.status == "FINISHED"
        history = client.get_metric_history(run.info.run_id, "loss")
        assert [(row.step, row.value) for row in history] == [(s, s / 2 + seed) for s in (10, 20, 30)]


def test_a_server_that_is_gone_does_not_stop_training(client, tmp_path, caplog):
    logger = Mlflow(tmp_path, seeds=(0,), step=0)
    client.delete_run(logger._sent.runs["0"])
    logger.add(10, {"loss": 1.0}, 0)
    assert "metrics.jsonl has every figure" in caplog.text


def test_nowhere_to_log_is_one_line_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://x")
    with pytest.raises(UsageError, match="set MLFLOW_TRACKING_URI to a server"):
        Mlflow(tmp_path, seeds=(0,), step=0)
