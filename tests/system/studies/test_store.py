"""Studies and logs at an address: worked on locally, sent back, and continued elsewhere.

The slow tests have a real S3 server, in a process of its own."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from little import outcome
from made_study import performed_here, study_words, tables
from optimist.cli.main import main
from optimist.data import Recorder, Spec, open_dataset
from optimist.data.disk.files import remove
from optimist.data.verify import verify
from optimist.errors import DataError, StorageError
from optimist.studies import store as stores
from optimist.studies.perform import check_logs
from optimist.studies.store import Store, stage, staged_path
from optimist.studies.study_file import load
from s3_server import forget_stores, s3_server

LOG, DQN = "logs/minatar-breakout", "runs/minatar-breakout/all/dqn"


def test_a_folder_of_a_disk_is_an_address_too(tmp_path):
    (tmp_path / "here" / "deep").mkdir(parents=True)
    (tmp_path / "here" / "deep" / "file").write_text("kept")
    assert Store(f"file://{tmp_path}/there").send(tmp_path / "here", "run") == 1
    assert Store(f"file://{tmp_path}/there").bring("run", tmp_path / "again")
    assert (tmp_path / "again" / "deep" / "file").read_text() == "kept"


@pytest.fixture(scope="module")
def server():
    with s3_server() as bucket:
        yield bucket


@pytest.fixture
def memory():
    """A store in this process, for what does not depend on its kind."""
    import fsspec

    fsspec.filesystem("memory").store.clear()
    fsspec.filesystem("memory").pseudo_dirs[:] = [""]
    yield "memory://bucket/study"
    fsspec.filesystem("memory").store.clear()
    fsspec.filesystem("memory").pseudo_dirs[:] = [""]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def log_of(path: Path, address: str, value: float = 1.0, steps: int = 1) -> Path:
    """A log of equal steps, also at the address."""
    row = np.full((1, 2), value, np.float32)
    with Recorder(path, Spec((2,), "float32", actions=3), lanes=1) as recorder:
        for _ in range(steps):
            recorder.add(row, [0], [value], [False], [False], row)
    Store(address).send(path, "")
    return path


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_comes_back_as_it_was_sent(memory, tmp_path):
    here = written(tmp_path / "here", a="1", b__c="2", DONE="", b__checkpoints__9="9")
    written(here, **{".lock": "", "b__x.partial": "half"})
    assert Store(memory).send(here, "run") == 4  # not what belongs to a process
    assert Store(memory).bring("run", tmp_path / "there")
    assert tree(tmp_path / "there") == {"a": "1", "b/c": "2", "DONE": "", "b/checkpoints/9": "9"}
    assert Store(memory).bring("run", tmp_path / "light", without=("checkpoints",))
    assert "b/checkpoints/9" not in tree(tmp_path / "light")
    assert not Store(memory).bring("nowhere", tmp_path / "nothing")


def test_only_what_changed_is_sent_and_what_is_gone_is_removed(memory, tmp_path):
    here, store = written(tmp_path / "here", a="1", old="2"), Store(memory)
    assert (store.send(here, "run"), store.send(here, "run")) == (2, 0)
    (here / "old").unlink()
    written(here, a="changed")
    assert store.send(here, "run") == 1
    Store(memory).bring("run", tmp_path / "there")
    assert tree(tmp_path / "there") == {"a": "changed"}


def test_the_mark_of_a_finished_run_is_sent_last(memory, tmp_path, monkeypatch):
    here, sent = written(tmp_path / "here", DONE="", a="1", zz="2"), []
    store = Store(memory)
    monkeypatch.setattr(store._files, "put_file", lambda path, there: sent.append(Path(path).name))
    store.send(here, "run")
    assert sent == ["a", "zz", "DONE"]


def test_what_tells_of_other_files_is_sent_after_them(memory, tmp_path, monkeypatch):
    here = written(tmp_path / "here", **{"agent__checkpoints__1": "", "manifest.json": "1", "steps-1": ""})
    store, sent = Store(memory), []
    put = store._files.put_file

    def recorded_meanwhile(path, there):
        """The recorder goes on: a second shard, a manifest that lists it, and a checkpoint."""
        sent.append(Path(path).name)
        put(path, there)
        if sent == ["steps-1"]:
            written(here, **{"steps-2": "", "manifest.json": "1, 2", "agent__checkpoints__2": ""})

    monkeypatch.setattr(store._files, "put_file", recorded_meanwhile)
    assert store.send(here, "log") == 1  # neither the manifest nor the checkpoints
    assert store.send(here, "log") == 4
    assert sent == ["steps-1", "steps-2", "manifest.json", "1", "2"]


def test_a_checkpoint_that_appears_meanwhile_is_sent_next_time(memory, tmp_path, monkeypatch):
    here, listed, store = written(tmp_path / "here", rows="1"), stores._kept_files, Store(memory)

    def listed_before_it_saved(folder):
        found = listed(folder)
        if not (here / "checkpoints").exists():
            written(here, checkpoints__1="")
        return found

    monkeypatch.setattr(stores, "_kept_files", listed_before_it_saved)
    assert (store.send(here, "run"), store.send(here, "run")) == (1, 1)
    assert store.has("run/checkpoints/1")


def test_what_a_lost_process_did_not_send_is_removed(memory, tmp_path):
    there = written(tmp_path / "there", rows="1", checkpoints__1="")
    Store(memory).send(there, "run")
    here = written(tmp_path / "here", rows="1 2", checkpoints__1="", checkpoints__2="", **{".lock": ""})
    Store(memory).bring("run", here, exactly=True)
    assert tree(here) == {**tree(there), ".lock": ""}


@pytest.mark.parametrize("name", ["../victim", "logs/../../victim", "/tmp/victim", "./a", "a\\..\\b"])
def test_a_file_that_leads_out_of_the_folder_is_refused(name, memory, tmp_path):
    """A store takes any text for a name, and not everybody who writes there is trusted here."""
    Store(memory).send(written(tmp_path / "there", a="1"), "run")
    files = Store(memory)._files
    files.store[f"/bucket/study/run/{name}"] = files.store["/bucket/study/run/a"]
    with pytest.raises(DataError, match="which leads out of its folder: remove it"):
        Store(memory).bring("run", tmp_path / "deep" / "here")
    assert not (tmp_path / "deep").exists()


def test_a_link_that_leads_out_of_the_folder_is_not_sent(memory, tmp_path):
    here = written(tmp_path / "here", a="1", b__inside="2")
    (here / "b" / "latest").symlink_to(here / "b" / "inside")
    assert Store(memory).send(here, "run") == 3
    (tmp_path / "secret").write_text("mine")
    (here / "b" / "other").symlink_to(tmp_path / "secret")
    with pytest.raises(
        DataError, match="other is a link that leads out of .*here: put the file itself there"
    ):
        Store(memory).send(here, "again")
    assert not Store(memory).listed("again")


def test_a_run_is_sent_while_it_goes_on_and_at_its_end(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "SEND_SECONDS", 0.01)
    here, store = written(tmp_path / "here", a="1"), Store(memory)
    with pytest.raises(KeyboardInterrupt), store.kept_up(here, "run"):
        while not store.has("run/a"):
            time.sleep(0.01)
        written(here, b="2")
        raise KeyboardInterrupt
    assert store.has("run/b")


def test_a_log_at_an_address_is_staged_once(memory, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"has no manifest.json: correct the address"):
        stage(memory)
    Store(memory).send(written(tmp_path / "log", **{"manifest.json": "{}"}), "")
    assert stage(memory) == staged_path(memory) == stage(memory)
    assert tree(staged_path(memory)) == {"manifest.json": "{}"}
    assert staged_path(memory) != staged_path(f"{memory}/other")


def test_a_log_that_has_grown_is_staged_without_its_earlier_last_shard(memory, tmp_path, monkeypatch):
    """A recording replaces its unfinished shard by a longer one under another name; the old one stayed."""
    removals: list[int] = []

    def removed(*paths: Path) -> None:
        """Whoever opens the log before the old files are gone finds all files of the new manifest."""
        removals.append(len(open_dataset(staged_path(memory))))
        remove(*paths)

    monkeypatch.setattr(stores, "remove", removed)
    row = np.zeros((1, 2), np.float32)
    with Recorder(tmp_path / "log", Spec((2,), "float32", actions=3), lanes=1) as recorder:
        for steps in (3, 8):
            while recorder.steps < steps:
                recorder.add(row, [0], [0.0], [False], [False], row)
            recorder.flush()
            Store(memory).send(tmp_path / "log", "")
            assert len(open_dataset(stage(memory))) == steps == removals[-1]
            assert verify(staged_path(memory)) == []
    Store(memory)._files.rm_file("/bucket/study/manifest.json")
    with pytest.raises(DataError, match=r"has no manifest.json"):
        stage(memory)
    assert len(open_dataset(staged_path(memory))) == 8


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_log_that_was_replaced_by_one_of_equal_sizes_is_staged_anew(
    memory, tmp_path, monkeypatch, interrupted
):
    """Large files are compared by their hashes too, not by their sizes alone."""
    monkeypatch.setattr(stores, "_is_small", lambda size: False)
    for value in (1.0, 2.0):
        log_of(tmp_path / str(value), memory, value, steps=8)
        assert open_dataset(stage(memory)).timeline.reward.tolist() == [value] * 8
        assert verify(staged_path(memory)) == []
        if interrupted:  # without a manifest, nothing says what the files of equal sizes are
            (staged_path(memory) / "manifest.json").unlink()


def test_a_staged_log_is_not_brought_again(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_is_small", lambda size: False)
    log_of(tmp_path / "log", memory)
    times = [{path: path.stat().st_mtime_ns for path in stage(memory).glob("*.arrow")} for _ in range(2)]
    assert len(times[0]) == 2 and times[0] == times[1]


def test_a_study_on_a_log_that_is_not_there_is_refused(memory, tmp_path):
    [run, *_] = [job for job in load(study_words(tmp_path, "")[2], "tiny").jobs() if job.label]
    there = replace(run, data=memory, needs=())
    with pytest.raises(DataError, match="has no manifest.json: correct `data` in the study's file"):
        check_logs([there], tmp_path)


@pytest.mark.parametrize(
    ("words", "code", "phrase"),
    [
        (["work", "memory://none/at-all", "--index", "0"], 6, "memory://none/at-all has no study.json"),
        (["pull", "memory://none/at-all", "OUT"], 6, "has no study.json: correct the address"),
        (["pull", "here", "OUT"], 2, '"here" is not an address: name one, such as s3://bucket/study'),
        (["push", "OUT", "memory://a/b"], 4, "is not a study's folder"),
        (["work", "OUT", "--index", "0", "--scratch", "OUT"], 2, "--scratch is for a study at an address"),
        (["pull", "nosuch://a/b", "OUT"], 6, "nosuch://a/b cannot be opened (Protocol not known: nosuch)"),
    ],
)
def test_mistakes_are_one_line(words, code, phrase, tmp_path, capsys):
    line = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    assert main(["study", *line]) == code
    complaint = capsys.readouterr().err
    assert phrase in complaint and complaint.count("\n") == 1


@pytest.mark.slow
def test_a_store_that_cannot_be_reached_is_one_line(monkeypatch, tmp_path):

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    forget_stores()
    with pytest.raises(StorageError, match="s3://nobody/study/study.json: "):
        Store("s3://nobody/study").has("study.json")
    forget_stores()


@pytest.mark.slow
def test_nodes_that_share_no_disk_come_to_the_same_numbers(server, tmp_path):
    straight = performed_here(tmp_path / "straight")
    assert main(study_words(tmp_path, tmp_path / "mine", "--prepare")) == 0
    address = f"{server}/little"
    assert main(["study", "push", str(tmp_path / "mine"), address]) == 0
    for index in range(4):  # each on a node of its own
        scratch = tmp_path / f"node-{index}"
        assert main(["study", "work", address, "--index", str(index), "--scratch", str(scratch)]) == 0
        assert not list(scratch.glob("*/runs/*/*/dqn"))  # it is in the store
        shutil.rmtree(scratch)
    assert main(["study", "pull", address, str(tmp_path / "results")]) == 0
    assert not (tmp_path / "results" / DQN / "checkpoints").exists()
    assert main(["study", "pull", address, str(tmp_path / "whole"), "--checkpoints"]) == 0
    assert outcome(tmp_path / "whole" / DQN) == outcome(straight / DQN)
    assert main(["study", "report", str(tmp_path / "results")]) == 0
    assert tables(tmp_path / "results") == tables(straight)


@pytest.mark.slow
def test_a_study_learns_from_logs_at_an_address(server, tmp_path, monkeypatch):
    first = performed_here(tmp_path / "first")
    Store(f"{server}/logs/breakout").send(first / LOG, "")
    _, _, study, *line = study_words(tmp_path, tmp_path / "second", "--workers", "1")
    text = Path(study).read_text()
    Path(study).write_text(text[: text.index("[scales.tiny.collect]")] + f'data = "{server}/logs/{{game}}"\n')
    assert main(["study", "run", study, *line]) == 0
    ours, theirs = ((out / DQN / "episodes.csv").read_text() for out in (tmp_path / "second", first))
    assert ours == theirs
    assert os.listdir(tmp_path / "cache" / "optimist" / "staged")


def test_a_file_that_is_half_brought_has_another_name(tmp_path, memory, monkeypatch):
    store = Store(memory)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "steps.arrow").write_bytes(bytes(1000))
    store.send(tmp_path / "here", "run")

    def half(_, local, **__):
        Path(local).write_bytes(bytes(500))
        raise OSError("the connection is lost")

    with monkeypatch.context() as patch:
        patch.setattr(store._files, "get_file", half)
        with pytest.raises(StorageError, match="the connection is lost"):
            store.bring("run", tmp_path / "there")
    assert not (tmp_path / "there" / "steps.arrow").exists()
    store.bring("run", tmp_path / "there")
    assert (tmp_path / "there" / "steps.arrow").stat().st_size == 1000


def test_a_log_is_staged_by_one_process_at_a_time(tmp_path, memory, monkeypatch):
    log_of(tmp_path / "log", memory)
    folder = staged_path(memory)
    folder.parent.mkdir(parents=True)
    with ThreadPoolExecutor(1) as pool:
        with FileLock(f"{folder}.lock"):
            staged = pool.submit(stage, memory)
            with pytest.raises(TimeoutError):
                staged.result(timeout=0.5)
            assert not folder.exists()
        assert len(open_dataset(staged.result(timeout=60))) == 1


def test_staging_through_a_link_removes_nothing(tmp_path, memory, monkeypatch):
    log_of(tmp_path / "log", memory)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("kept")
    staged_path(memory).parent.mkdir(parents=True)
    staged_path(memory).symlink_to(tmp_path / "mine")
    with pytest.raises(StorageError, match="is a link: remove it"):
        stage(memory)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "kept"
