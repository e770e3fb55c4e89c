"""Every row of a run's files has a running checksum: damage is named by file and line; the run goes on."""

import json
from dataclasses import replace

import numpy as np
import pytest

from little import GAME, add_metrics, outcome, small, vectors
from optimist.data import Dataset
from optimist.errors import RunError
from optimist.studies.scores.curves import episodes
from optimist.training.evaluation import EpisodeScore
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training
from optimist.training.storage import rows
from optimist.training.storage.rows import read_episodes, read_metrics
from optimist.training.storage.run_folder import Alarm, RunFolder, read_alarms, write_alarms

STEPS = (10, 20, 30)
FILES = ("metrics.jsonl", "episodes.csv", "alarms.json")


@pytest.fixture
def run(tmp_path):
    """The folder of a run with three evaluations and two alarms."""
    with RunFolder(tmp_path, {}) as folder:
        for step in STEPS:
            add_metrics(
                folder, [{"step": step, "seed": s, "loss_q": 0.5 / step, "estimate": 1.0} for s in (0, 1)]
            )
            folder.add_episodes([EpisodeScore(step, s, n, 1.5 * n, 7) for s in (0, 1) for n in (0, 1)])
        write_alarms(folder.path, {0: Alarm(10, 5, 9.0, 3.0), 1: Alarm(20, 10, None, 3.0)})
    return tmp_path


def read_all(run) -> None:
    """As reports do, and whoever plots the metrics."""
    read_episodes(run)
    read_alarms(run)
    read_metrics(run)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("name", FILES)
def test_no_flipped_bit_is_taken_for_good(run, name):
    read_all(run)
    content, random = (run / name).read_bytes(), np.random.default_rng(0)
    bits = random.permutation(8 * len(content))[:400]
    for bit in bits.tolist():
        (run / name).write_bytes(flipped(content, bit))
        with pytest.raises(RunError, match=name):
            read_all(run)


def test_120_flips_are_named_and_the_run_goes_on(run, caplog):
    random, before = np.random.default_rng(0), {name: (run / name).read_bytes() for name in FILES}
    for name in random.choice(FILES, 120).tolist():
        for each, content in before.items():
            (run / each).write_bytes(content)
        (run / name).write_bytes(flipped(before[name], int(random.integers(8 * len(before[name])))))
        caplog.clear()
        with RunFolder(run, {}) as folder:
            folder.rewind(30)
            add_metrics(folder, [{"step": 40, "seed": 0}])
            folder.add_episodes([EpisodeScore(40, 0, 0, 1.0, 7)])
        [told] = [record.getMessage() for record in caplog.records]
        assert str(run / name) in told and ("line " in told or name == "alarms.json")
        assert rows.has_step(run / "episodes.csv", 40)


def lines(path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.csv"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows[:2] + rows[3:], "line 3 is damaged"),
        (lambda rows: rows[:3] + rows[2:], "line 4 is damaged"),
        (lambda rows: rows[:1] + rows[2:3] + rows[1:2] + rows[3:], "line 2 is damaged and 2 more"),
        (lambda rows: rows[1:], "line 1 is damaged"),
    ],
    ids=["lost", "twice", "swapped", "the first lost"],
)
def test_a_row_that_is_lost_or_there_twice_is_noticed(run, name, change, told):
    (run / name).write_text("".join(change(lines(run / name))))
    with pytest.raises(RunError, match=f"{name}: {told}"):
        read_all(run)


def test_a_damaged_row_from_before_the_checkpoint_stays_named(run, caplog):
    """Nobody can write it again: the run goes on, and no report takes the rest for everything."""
    damaged = [
        row.replace("1.5", "1.7") if row.startswith("10,0,1,") else row for row in lines(run / "episodes.csv")
    ]
    (run / "episodes.csv").write_text("".join(damaged))
    for _ in range(2):
        caplog.clear()
        with RunFolder(run, {}) as folder:
            folder.rewind(20)
        assert "episodes.csv: line 3 is damaged; the run continues" in caplog.text
        assert lines(run / "episodes.csv") == damaged[:9]
    with pytest.raises(RunError, match=r"episodes.csv: line 3 is damaged; restore it .*--restart"):
        episodes(run)


@pytest.mark.parametrize(
    ("damage", "kept"), [(("30,0,0,", "30,0,9,"), 5), (("30,1,1,", "30,9,1,"), 9)], ids=["first", "last"]
)
def test_damage_after_the_checkpoint_is_cut_off(run, damage, kept):
    """The first row after the last evaluation could be one of it: that evaluation is made again."""
    before = lines(run / "episodes.csv")
    (run / "episodes.csv").write_text("".join(before).replace(*damage))
    with RunFolder(run, {}) as folder:
        folder.rewind(20)
    assert lines(run / "episodes.csv") == before[:kept]
    read_all(run)


@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.csv"])
@pytest.mark.parametrize("cut", [1, 9, 25])
def test_a_row_that_a_kill_left_incomplete_does_not_count(run, caplog, name, cut):
    whole = (run / name).read_bytes()
    (run / name).write_bytes(whole[:-cut])
    read_all(run)
    with RunFolder(run, {}) as folder:
        folder.rewind(30)
        assert folder.has_episodes(30)
    assert whole.startswith((run / name).read_bytes()) and not caplog.records
    read_all(run)


def test_what_a_power_cut_left_at_the_end_is_cut_off_and_said(run, caplog):
    whole = (run / "episodes.csv").read_bytes()
    (run / "episodes.csv").write_bytes(whole + bytes(50) + b"\n" + bytes(20))
    with RunFolder(run, {}) as folder:
        folder.rewind(20)
    assert "episodes.csv: line 14 is damaged" in caplog.text or not caplog.records
    with RunFolder(run, {}) as folder:
        folder.add_episodes([EpisodeScore(30, 0, 0, 1.5, 7)])
    read_all(run)
    assert {row.step for row in read_episodes(run)} == {10, 20, 30}


@pytest.mark.parametrize("damage", [("30,0,0,", "3?,0,0,"), ("30,1,1,", "40,1,1,"), ("20,1,1,", "90,1,1,")])
def test_a_part_of_an_evaluation_is_none(run, damage):
    """A row of the checkpoint's step, or one that could be, is damaged: the evaluation is made again."""
    text = (run / "episodes.csv").read_text()
    (run / "episodes.csv").write_text(text.replace(*damage))
    with RunFolder(run, {}) as folder:
        folder.rewind(30)
        assert not folder.has_episodes(30)


def test_rows_are_on_disk_before_the_checkpoint_that_counts_on_them(run, monkeypatch):
    done = []
    monkeypatch.setattr(rows, "sync", lambda path: done.append(path.name))
    monkeypatch.setattr(
        "optimist.training.storage.checkpoint.save_state", lambda *_: done.append("checkpoint")
    )
    with RunFolder(run, {}) as folder:
        folder.save_state(30, {})
    assert done == ["metrics.jsonl", "episodes.csv", "checkpoint"]


def test_rows_are_on_disk_before_a_run_is_called_done(run, monkeypatch):
    done = []
    monkeypatch.setattr(rows, "sync", lambda path: done.append((path.name, (run / "DONE").exists())))
    with RunFolder(run, {}) as folder:
        (run / "DONE").unlink(missing_ok=True)
        folder.finish()
    assert done == [("metrics.jsonl", False), ("episodes.csv", False)] and (run / "DONE").exists()


SHORT = Training(steps=40, evaluate_every=20, episodes=2, batch=8, checkpoint_seconds=0)


def test_a_damaged_last_evaluation_is_made_again(log, tmp_path):
    def train(out):
        settings = {"out": out, "seeds": (0, 1), "environment": GAME}
        OfflineTraining(small("dqn"), Dataset.open(log), SHORT, **settings).run()

    train(tmp_path)
    before, text = outcome(tmp_path), (tmp_path / "episodes.csv").read_text()
    place = text.index("40,1,0,")
    (tmp_path / "episodes.csv").write_text(text[:place] + "4?,1,0," + text[place + 7 :])
    train(tmp_path)
    assert outcome(tmp_path) == before
    read_all(tmp_path)


def test_training_goes_on_over_damaged_files(tmp_path, caplog):
    training = Training(steps=40, evaluate_every=20, batch=8, clip_rewards=9.0)
    for steps in (40, 80):
        OfflineTraining(small("dqn"), vectors(), replace(training, steps=steps), out=tmp_path).run()
        if steps == 40:
            whole = (tmp_path / "metrics.jsonl").read_bytes()
            (tmp_path / "metrics.jsonl").write_bytes(b"\xff" + whole[1:])
            (tmp_path / "alarms.json").write_bytes(b"\xff")
    told = [line for line in caplog.messages if "episodes are held out" not in line]
    assert len(told) == 2 and "metrics.jsonl: line 1 is damaged" in told[0] and "alarms.json" in told[1]
    _, *good = (tmp_path / "metrics.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["step"] for line in good] == [40, 60, 80]
    assert (tmp_path / "DONE").exists() and read_alarms(tmp_path) == {}
