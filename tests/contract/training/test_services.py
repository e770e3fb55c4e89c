"""Both loops log, evaluate and save by the same services; where figures go is no part of a run's identity."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from little import GAME, small, vectors
from optimist.data import Dataset
from optimist.errors import UsageError
from optimist.training.offline import OfflineTraining
from optimist.training.online import OnlineTraining
from optimist.training.settings import Collection, Training
from optimist.training.storage.rows import read_episodes
from optimist.training.storage.run_folder import read_config

TRAINING = Training(steps=8, evaluate_every=4, episodes=1, batch=4)
COLLECTION = Collection(steps=32, lanes=4, window=32, warm_up=8, batch=4, evaluate_every=16, episodes=1)


class Tags:
    """A logger that counts what it is told, and knows whether it was closed."""

    made: "list[Tags]" = []

    def __init__(self, folder, seeds, step):
        self.begun_at, self.seen, self.closed = (folder, seeds, step), Counter(), False
        Tags.made.append(self)

    def add(self, step, values, seed):
        self.seen.update((step, seed, name) for name in values)

    def close(self):
        self.closed = True


@pytest.fixture
def made(monkeypatch) -> list[Tags]:
    monkeypatch.setattr(Tags, "made", [])
    return Tags.made


def test_tags_mean_the_same_offline_and_online(log, tmp_path, made):
    online, offline = tmp_path / "online", tmp_path / "offline"
    OnlineTraining(small("dqn"), GAME, replace(COLLECTION, loggers=("jsonl", Tags)), out=online).run()
    more = {"out": offline, "environment": GAME, "seeds": (3, 5)}
    OfflineTraining(small("dqn"), Dataset.open(log), replace(TRAINING, loggers=(Tags,)), **more).run()
    played, trained = (logger.seen for logger in made)
    assert [played[step, 0, "return"] for step in (16, 32)] == [1, 1]
    assert [trained[step, seed, "return"] for step in (4, 8) for seed in (3, 5)] == [1] * 4
    assert played[32, 0, "play/return"] == 1 and (8, 3, "play/return") not in trained
    assert {"loss_q", "estimate"} < {name for _, _, name in trained}
    assert all(logger.closed for logger in made)
    rows = [json.loads(line) for line in (online / "agent" / "metrics.jsonl").read_text().splitlines()]
    assert "play/return" in rows[-1] and not any("return" in row for row in rows)
    assert {row.step for row in read_episodes(online / "agent")} == {16, 32}
    assert not (offline / "metrics.jsonl").exists()


def test_another_logger_is_the_same_run(tmp_path, made):
    common = {"out": tmp_path, "environment": ""}
    OfflineTraining(small("dqn"), vectors(), TRAINING, **common).run()
    before = read_config(tmp_path)
    more = replace(TRAINING, steps=12, loggers=("jsonl", Tags))
    OfflineTraining(small("dqn"), vectors(), more, **common).run()
    assert made[0].begun_at == (tmp_path, (0,), 8)
    before["training"]["steps"] = 12
    assert read_config(tmp_path) == before


def test_a_logger_that_is_not_found_is_refused_before_the_folder_is_made(tmp_path):
    for loggers in ("jsonl,tensorbord", "nowhere:Logger"):
        with pytest.raises(UsageError, match='did you mean "tensorboard"|no module "nowhere"'):
            OfflineTraining(
                small("dqn"), vectors(), replace(TRAINING, loggers=loggers), out=tmp_path / "run"
            ).prepare()
    assert not (tmp_path / "run").exists()
