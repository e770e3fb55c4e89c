"""Parsers of foreign bytes, for coverage-guided fuzzing (`hypothesis fuzz`) and for plain hypothesis: each
accepts its bytes or raises an error of ours, in one line."""

import hashlib
import json
import struct
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.data.disk import manifest
from optimist.errors import OptimistError
from optimist.studies import study_file
from optimist.training.storage import alarms, checked_lines, run_folder
from optimist.training.storage.checkpoint import load_state

numbers = st.integers() | st.sampled_from([-1, 0, 2**31, 2**63, 10**30]) | st.floats()
words = st.text(max_size=8) | st.sampled_from(["uint8", "float32", "../x", "a\nb", "gym/evil:E-v0", "dqn"])
plain = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=8,
)


def refused_in_one_line(name: str, content: bytes, read: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        try:
            read(Path(folder))
        except OptimistError as problem:
            assert "\n" not in str(problem)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_a_manifest_of_any_bytes(content):
    refused_in_one_line("manifest.json", content, manifest.read)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("spec", "provenance", "shards", "steps", "episodes", "columns"), plain),
    )
)
def test_a_manifest_of_any_values_under_its_hash(record):
    record = {"format": manifest.FORMAT, "version": manifest.VERSION, **record}
    try:
        content = manifest.signed(record).encode()
    except ValueError:  # the forger's own file cannot be written
        return
    refused_in_one_line("manifest.json", content, manifest.read)


@settings(deadline=None)
@given(plain | st.binary(max_size=60), st.binary(max_size=60))
def test_a_checkpoint_of_any_header(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = struct.pack("<Q", len(text)) + text + data
    name = f"step-000000000001-{hashlib.sha256(content).hexdigest()[:32]}.safetensors"
    refused_in_one_line(name, content, lambda folder: load_state(folder, {"w": np.zeros(4, np.float32)}))


@settings(deadline=None)
@given(st.binary(max_size=200) | st.dictionaries(st.sampled_from(["0", "1", "crc"]), plain))
def test_alarms_of_any_bytes(content):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    refused_in_one_line(alarms.NAME, content, alarms.read_alarms)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_a_configuration_of_any_bytes(content):
    refused_in_one_line("config.toml", content, run_folder.read_config)


@settings(deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=100) | st.none())
def test_rows_of_any_bytes(content, checks):
    def read(folder: Path) -> None:
        if checks is not None:
            (folder / "episodes.csv.crc").write_bytes(checks)
        run_folder.read_episodes(folder)
        checked_lines.rewind(folder / "episodes.csv", 3, comes_again=True)

    header = b"step,seed,episode,return,length\n"
    refused_in_one_line("episodes.csv", header + content, read)


KEYS = (
    "environments",
    "agents",
    "recipe",
    "seeds",
    "training",
    "collect",
    "data",
    "play",
    "views",
    "figures",
)


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*KEYS, "scales", "select", "film"), plain)))
def test_a_study_of_any_values(table):
    try:
        study_file.read("forged", table, "tiny")
    except OptimistError as problem:
        assert "\n" not in str(problem)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_a_study_of_any_text(text):
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    try:
        study_file.read("forged", table, "tiny")
    except OptimistError as problem:
        assert "\n" not in str(problem)
