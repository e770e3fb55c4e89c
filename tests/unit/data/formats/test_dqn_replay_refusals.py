"""Damaged logs are refused with one line that names the file; nothing in them is trusted or executed."""

import gzip
import json
import re
import shutil
import struct

import numpy as np
import pytest

from optimist.errors import DataError
from replay_ring import REPLAY, Ring, import_dqn_replay, play, put

pytestmark = pytest.mark.usefixtures("quick_disk")
OBSERVATION, ACTION = "$store$_observation_ckpt.1.gz", "$store$_action_ckpt.1.gz"
REWARD, TERMINAL = "$store$_reward_ckpt.1.gz", "$store$_terminal_ckpt.1.gz"
CAPACITY = 40


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    ring = play(Ring(tmp_path_factory.mktemp("sound") / "run", CAPACITY), [50, 12, 30, 9], unfinished=9)
    ring.finish()
    assert sorted(ring.fresh) == [0, 1, 2, 3]
    return ring.folder


@pytest.fixture
def logs(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "logs")
    return tmp_path / "logs"


def array(path):
    with gzip.open(path) as stream:
        return np.load(stream)


def changed(name, row, value):
    def damage(logs):
        content = array(logs / name)
        content[row] = value
        put(logs / name, content)

    return damage


def replaced(name, content):
    return lambda logs: put(logs / name, content)


def raw(name, content):
    return lambda logs: (logs / name).write_bytes(content)


def npy(header: str, payload: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return gzip.compress(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + payload)


def head(descr="'|u1'", fortran="False", shape="(40, 6, 5)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


def gone(name):
    return lambda logs: (logs / name).unlink()


def bytes_of(name, change):
    """The packed bytes of a file are changed."""
    return lambda logs: (logs / name).write_bytes(change((logs / name).read_bytes()))


def unpacked(name, change):
    return bytes_of(name, lambda content: gzip.compress(change(gzip.decompress(content))))


wrong_checksum = bytes_of(OBSERVATION, lambda old: old[:-6] + bytes([old[-6] ^ 1]) + old[-5:])


def the_same_window_twice(logs):
    for path in list(logs.glob("*_ckpt.1.gz")):
        shutil.copy(path, logs / path.name.replace(".1.gz", ".7.gz"))


def short_columns(logs):
    for name in (ACTION, REWARD, TERMINAL):
        put(logs / name, array(logs / name)[:-1])


def whole_shorter(logs):
    short_columns(logs)
    put(logs / OBSERVATION, array(logs / OBSERVATION)[:-1])
    put(logs / "add_count_ckpt.1.gz", np.array(77))
    put(logs / "invalid_range_ckpt.1.gz", (77 % 39 - 1 + np.arange(5)) % 39)


def unfinished_in_the_middle(logs):
    put(logs / "add_count_ckpt.1.gz", np.array(50))
    put(logs / "invalid_range_ckpt.1.gz", np.arange(9, 14))


PACKED = "is not a readable gzipped .npy file"
ENDED = f"{OBSERVATION} {PACKED} .Compressed file ended before"
REFUSED = {
    "truncated": (bytes_of(OBSERVATION, lambda old: old[: len(old) // 2]), ENDED),
    "without its trailer": (bytes_of(OBSERVATION, lambda old: old[:-3]), ENDED),
    "trailing garbage": (bytes_of(OBSERVATION, lambda old: old + b"more"), "Not a gzipped file .b'mo'"),
    "two members": (bytes_of(ACTION, lambda old: old + gzip.compress(b"more")), "holds more than its header"),
    "wrong checksum": (wrong_checksum, f"{OBSERVATION} {PACKED} .CRC check failed"),
    "more than declared": (
        unpacked(REWARD, lambda old: old + b"1234"),
        "holds more than its header declares",
    ),
    "less than declared": (
        unpacked(OBSERVATION, lambda old: old[:-30]),
        "holds less than its header declares",
    ),
    "empty file": (raw(ACTION, b""), f"{ACTION} {PACKED}"),
    "not gzip": (raw(ACTION, b"hello" * 99), f"{ACTION} {PACKED} .Not a gzipped file"),
    "not npy": (raw(ACTION, gzip.compress(b"hello" * 99)), f"{ACTION} {PACKED}"),
    "missing terminal": (gone(TERMINAL), f"{TERMINAL} is missing"),
    "missing add_count": (gone("add_count_ckpt.2.gz"), "add_count_ckpt.2.gz is missing"),
    "rows": (replaced(ACTION, np.zeros(39, "<i4")), f"{ACTION} has 39 rows, the observations 40"),
    "all columns short": (short_columns, "has 39 rows, the observations 40"),
    "another capacity": (whole_shorter, r"has the shape \(39, 6, 5\), that of suffix 0 is \(40, 6, 5\)"),
    "add_count": (replaced("add_count_ckpt.1.gz", np.array(80)), "puts the cursor at 0, but invalid_range"),
    "negative add_count": (replaced("add_count_ckpt.1.gz", np.array(-1)), "says -1"),
    "unfinished inside": (unfinished_in_the_middle, "neither a full dump nor the last one"),
    "duplicate": (the_same_window_twice, "suffixes 1 and 7 are both of window 1"),
    "wrong type": (replaced(ACTION, np.zeros(40, "<i8")), f"{ACTION} .*type '<i8' instead of '<i4'"),
    "float pixels": (replaced(OBSERVATION, np.zeros((40, 6, 5), "<f4")), "type '<f4' instead of '|u1'"),
    "dimensions": (replaced(OBSERVATION, np.zeros((40, 30), "|u1")), r"the shape \(40, 30\), not 3 dim"),
    "objects": (raw(ACTION, npy(head("'|O'", shape="(40,)"))), "it holds Python objects"),
    "fortran": (raw(OBSERVATION, npy(head(fortran="True"), bytes(1200))), "in Fortran order"),
    "huge": (raw(OBSERVATION, npy(head(shape="(40, 100000, 1000000)"))), "4000000000000 bytes, more than"),
    "huge number": (raw(OBSERVATION, npy(head(shape=f"({10**30}, 6, 5)"))), "more than"),
    "negative": (raw(OBSERVATION, npy(head(shape="(-40, 6, 5)"))), r"the shape \(-40, 6, 5\)"),
    "no tuple": (raw(OBSERVATION, npy(head(shape="40"))), "shape is not valid: 40"),
    "code": (raw(ACTION, npy("__import__('os').system('true')")), f"{ACTION} {PACKED}"),
    "nested": (raw(ACTION, npy("(" * 9000)), f"{ACTION} {PACKED}"),
    "long header": (raw(ACTION, npy(" " * 20_000)), "has a header of 20001 bytes"),
    "terminal": (changed(TERMINAL, 5, 2), f"{TERMINAL} row 5: 2 is neither 0 nor 1"),
    "nan": (changed(REWARD, 6, np.nan), f"{REWARD} row 6: nan is not finite"),
    "action": (changed(ACTION, 7, -3), f"{ACTION} row 7: -3 is negative"),
    "bright padding": (changed("$store$_observation_ckpt.0.gz", 1, 9), "row 1: .*padding.* not black"),
    "busy padding": (
        changed("$store$_action_ckpt.0.gz", 2, 1),
        "row 2: 1 should be padding before an episode",
    ),
}


@pytest.mark.parametrize(("damage", "said"), REFUSED.values(), ids=REFUSED)
def test_import_and_verify_say_it_in_one_line(logs, tmp_path, damage, said):
    damage(logs)
    said = said.replace("$", r"\$").replace("|", r"\|")
    with pytest.raises(DataError, match=said) as refused:
        import_dqn_replay(logs, tmp_path / "out")
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500
    assert not (tmp_path / "out").exists()
    problems = REPLAY.verify(logs).problems
    assert any(re.search(said, problem) for problem in problems), problems
    assert all("\n" not in problem for problem in problems)


def test_sound_logs_have_no_problem(logs):
    report = REPLAY.verify(logs.parent / "logs")
    assert report.problems == []
    assert report.heads[:4] == ("suffix", "window", "steps", "episodes")
    assert [row[:2] for row in report.rows] == [("0", "0"), ("1", "1"), ("2", "2"), ("3", "3")]
    assert sum(int(row[3]) for row in report.rows) == 4
    assert all(row[-2:] == ("0 to 3", "0") for row in report.rows[:3])


def test_actions_outside_the_set_are_refused_with_their_row(logs, tmp_path):
    with pytest.raises(DataError, match=r"action_ckpt.0.gz row \d+: 3 is outside the 3 actions"):
        import_dqn_replay(logs, tmp_path / "out", actions_count=3)
    with pytest.raises(DataError, match="0 actions: give"):
        import_dqn_replay(logs, tmp_path / "out", actions_count=0)


def test_a_pickled_seventh_file_is_never_opened(logs, tmp_path):
    for suffix in range(4):
        (logs / f"episode_end_indices_ckpt.{suffix}.gz").write_bytes(b"not even gzip")
    summary = import_dqn_replay(logs, tmp_path / "out")
    assert not any(note.startswith("note:") for note in summary.notes) and REPLAY.verify(logs).problems == []


def test_other_files_are_named(logs, tmp_path):
    (logs / "checkpoint.txt").write_text("")
    assert "such as checkpoint.txt" in import_dqn_replay(logs, tmp_path / "out").notes[-1]


def test_rewards_that_were_not_clipped_are_said(logs, tmp_path):
    changed(REWARD, 6, 5.0)(logs)
    import_dqn_replay(logs, tmp_path / "out")
    facts = json.loads((tmp_path / "out" / "manifest.json").read_text())["provenance"]
    assert facts["rewards"] == "as found, up to 5"
    assert any("row 6: 5 is outside [-1, 1]" in problem for problem in REPLAY.verify(logs).problems)


def test_the_same_content_twice_is_found(logs):
    for path in list(logs.glob("$store$_*_ckpt.1.gz")):
        shutil.copy(path, logs / path.name.replace(".1.gz", ".2.gz"))
    assert any("holds the same frames as suffix 1" in problem for problem in REPLAY.verify(logs).problems)


def test_a_game_s_folder_names_its_runs(logs, tmp_path):
    (tmp_path / "Pong").mkdir()
    for run in "12":
        (tmp_path / "Pong" / run).mkdir()
        shutil.copytree(logs, tmp_path / "Pong" / run / "replay_logs")
    with pytest.raises(DataError, match="holds the runs 1, 2; name one"):
        import_dqn_replay(tmp_path / "Pong", tmp_path / "out")
