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
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optimist.data.disk import manifest
from optimist.data.disk.records import sealed
from optimist.errors import OptimistError
from optimist.studies import status, study_file
from optimist.studies.results import logs
from optimist.studies.scores.curves import estimator_sheet
from optimist.training.loggers.wandb import Sent
from optimist.training.storage import configuration, rows, run_folder, selected
from optimist.training.storage.checkpoint import load_state

numbers = st.integers() | st.sampled_from([-1, 0, 2**31, 2**63, 10**30]) | st.floats()
words = st.text(max_size=8) | st.sampled_from(["uint8", "float32", "../x", "a\nb", "gym/evil:E-v0", "dqn"])
plain = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=8,
)


def refused_in_one_line(name: str, content: object, read: Callable[[Path], object]) -> None:
    """The content as bytes, or as JSON; a table under its hash, as a careful forger would write it."""
    if not isinstance(content, bytes):
        try:
            content = (sealed(content) if isinstance(content, dict) else json.dumps(content)).encode()
        except ValueError:  # the forger's own file cannot be written
            return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        try:
            read(Path(folder))
        except OptimistError as problem:
            assert "\n" not in str(problem)


def versions(folder: Path) -> None:
    assert all(isinstance(each, str) for each in configuration.read_versions(folder).values())


READERS: dict[str, Callable[[Path], object]] = {
    "manifest.json": manifest.read,
    "alarms.json": run_folder.read_alarms,
    "selection.json": selected.read_selection,
    "study.json": status.read_record,
    "versions.json": versions,
    "logs.json": lambda folder: logs._remembered(folder / "logs.json"),
    "metrics.jsonl": rows.read_metrics,
    "config.toml": run_folder.read_config,
}


@pytest.mark.parametrize("name", READERS)
@settings(deadline=None, max_examples=60)
@given(
    content=st.binary(max_size=200) | plain | st.dictionaries(st.sampled_from(["0", "1", "sha256"]), plain)
)
def test_a_file_of_any_bytes_or_values(name, content):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    refused_in_one_line(name, content, READERS[name])


@pytest.mark.parametrize("levels", [80, 900, 100_000])
@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_nested_deeply(name, levels):
    lists, tables = "[" * levels + "]" * levels, '{"a": ' * levels + "1" + "}" * levels
    for text in (lists, tables):
        text = f"a = {text.replace(':', ' =')}" if name.endswith(".toml") else text
        refused_in_one_line(name, text.encode() + b"\n", READERS[name])


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("spec", "provenance", "shards", "steps", "episodes", "columns"), plain)
    )
)
def test_a_manifest_of_any_values_under_its_hash(record):
    record = {"format": manifest.FORMAT, "version": manifest.VERSION, **record}
    refused_in_one_line("manifest.json", record, manifest.read)


@settings(deadline=None)
@given(plain | st.binary(max_size=60), st.binary(max_size=60))
def test_a_checkpoint_of_any_header(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = struct.pack("<Q", len(text)) + text + data
    name = f"step-000000000001-{hashlib.sha256(content).hexdigest()[:32]}.safetensors"
    refused_in_one_line(name, content, lambda folder: load_state(folder, {"w": np.zeros(4, np.float32)}))


@settings(deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_rows_of_any_bytes(content, checked):
    def read(folder: Path) -> None:
        rows.read_episodes(folder)
        rows.rewind(folder / "episodes.csv", 3)

    header = rows.HEADER if checked else rows.PLAIN
    refused_in_one_line("episodes.csv", header.encode() + content, read)


# Records of a run and of a study: some under a right checksum, which a forger can compute.

whole = st.integers(0, 10**6)
SAID = {"fingerprint": "known", "rule": "fqe", "updates": 50, "notes": [], "answer": "ship it"}
scores = st.dictionaries(words, numbers | st.none() | plain)
policy = st.fixed_dictionaries({"step": whole | plain, "seed": whole | plain}, optional={"scores": scores})
selection = st.fixed_dictionaries(
    {"rule": st.just("fqe"), "updates": st.just(50), "notes": st.just([]), "answer": st.just("ship it")},
    optional={
        "version": st.just(selected.VERSION) | plain,
        "fingerprint": st.just("known") | plain,
        "chosen": policy | plain | st.none(),
        "candidates": st.lists(policy, max_size=3) | plain,
    },
)


@settings(deadline=None)
@given(selection | plain | st.binary(max_size=60))
@example({"version": selected.VERSION, **SAID, "chosen": None, "candidates": []})
@example({"version": selected.VERSION, **SAID, "chosen": {"step": 1}, "candidates": []})
@example({"version": selected.VERSION, **SAID, "chosen": {"step": 1, "seed": 0.5}, "candidates": []})
def test_a_selection_of_any_values_under_its_checksum(record):
    def read(folder: Path) -> None:
        step, seed = selected.chosen_policy(folder, "known")
        assert type(step) is type(seed) is int
        selected.chosen_steps(selected.read_selection(folder) or {}, {0: {2}})

    refused_in_one_line(selected.NAME, record, read)


told = st.fixed_dictionaries(
    {},
    optional={
        "name": words | plain,
        "runs": st.dictionaries(st.just("0"), words) | plain,
        "rows": st.dictionaries(st.just("0"), st.lists(whole | st.lists(words | plain)) | plain) | plain,
    },
)


@settings(deadline=None)
@given(told | plain | st.binary(max_size=60))
@example({"rows": {"0": 5}})
def test_what_a_service_was_told_of_any_values(record):
    def read(folder: Path) -> None:
        (folder / "loggers").mkdir()
        (folder / "wandb.json").rename(folder / "loggers" / "wandb.json")
        service = Sent(folder)
        assert service.news(10**9, {"loss": 0.5}, seed=0) in ({}, {"loss": 0.5})
        service.note(10**9, {"loss": 0.5}, seed=0)
        assert isinstance(service.name, str)

    content = record if isinstance(record, bytes) else json.dumps(record).encode()
    refused_in_one_line("wandb.json", content, read)


log = st.fixed_dictionaries(
    {"player": numbers | plain, "best": plain, "average": plain},
    optional={"evaluation": numbers | plain, "players": plain},
)


@settings(deadline=None)
@given(st.dictionaries(words, log | plain) | plain)
@example({"game": {"player": 1.0, "best": {"all": "much"}, "average": {}}})
def test_remembered_logs_of_any_values(record):
    def read(folder: Path) -> None:
        for found in logs._remembered(folder / "logs.json").values():
            sum([*found.best.values(), *found.average.values(), *found.players.values()])

    refused_in_one_line("logs.json", json.dumps(record).encode(), read)


@settings(deadline=None)
@given(st.lists(st.fixed_dictionaries({}, optional={"step": plain, "seed": plain, "loss": plain}) | plain))
@example([{"step": 1, "seed": [], "loss": 0.5}])
@example([{"step": float("inf"), "seed": 0}])
def test_figures_of_any_values_under_their_checks(written):
    def read(folder: Path) -> None:
        (folder / rows.METRICS).unlink()
        rows.append(folder / rows.METRICS, [json.dumps(row) for row in written])
        estimator_sheet(found := rows.read_metrics(folder))
        rows.curves_of(found, "loss")

    refused_in_one_line(rows.METRICS, b"", read)


KEYS = ("environments", "agents", "recipe", "seeds", "training", "collect", "data", "play", "views", "scales")
MORE = ("figures", "select", "film")


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*KEYS, *MORE), plain)) | st.text(max_size=200))
def test_a_study_of_any_values_or_text(table):
    if isinstance(table, str):
        try:
            table = tomllib.loads(table)
        except tomllib.TOMLDecodeError:
            return
    try:
        study_file.read("forged", table, "tiny")
    except OptimistError as problem:
        assert "\n" not in str(problem)
