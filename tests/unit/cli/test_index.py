"""Help needs no JAX: what classes say is kept in the user's cache folder, and made again when it changes."""

import os
import threading

import pytest

from optimist.agents import available, presets
from optimist.agents._actor_critic import ActorAgent
from optimist.agents._table_agent import TableAgent
from optimist.cli import index
from optimist.errors import UsageError


@pytest.fixture
def made(tmp_path, monkeypatch) -> list[int]:
    """A folder as the cache, and how often `counted` was made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return []


def read(made: list[int], table: dict) -> dict:
    """The table as another process reads it."""

    def counted() -> dict:
        made.append(1)
        return table

    return index.kept(counted)()


def files(tmp_path) -> list:
    return list((tmp_path / "optimist" / "words").iterdir())


def test_a_table_is_made_once(made, tmp_path):
    assert read(made, {"a": (1, None)}) == read(made, {}) == {"a": [1, None]}
    assert len(made) == len(files(tmp_path)) == 1


def test_a_table_is_made_again_when_a_file_of_the_package_changes(made, monkeypatch):
    read(made, {"a": 1})
    monkeypatch.setattr(index, "_code_state", lambda: "others")
    assert read(made, {"b": 2}) == read(made, {}) == {"b": 2}
    assert len(made) == 2


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_damaged_table_is_made_again(made, tmp_path, place):
    read(made, {"a": 1})
    [file] = files(tmp_path)
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    assert read(made, {"a": 1}) == read(made, {}) == {"a": 1} and len(made) == 2


@pytest.mark.parametrize("spoil", [lambda cache: cache.write_text(""), lambda cache: cache.mkdir(0o500)])
def test_a_cache_that_cannot_be_written_is_no_error(made, tmp_path, monkeypatch, spoil):
    spoil(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError("read-only")))
    assert read(made, {"a": 1}) == read(made, {"a": 1}) == {"a": 1} and len(made) == 2


def test_several_processes_may_make_a_table_at_once(made, tmp_path):
    table = {str(number): "x" * 1000 for number in range(100)}
    writers = [threading.Thread(target=read, args=(made, table)) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert read(made, {}) == table and len(files(tmp_path)) == 1


def test_every_setting_is_explained():
    tables = [*index.records().values(), *(family["settings"] for family in index.environments().values())]
    tables += [entry[action] or {} for entry in index.formats().values() for action in ("read", "write")]
    tables += [each["settings"] for agent in index.agents().values() for each in agent["presets"].values()]
    assert [name for table in tables for name, (_, help, _) in table.items() if not help] == []


@pytest.mark.parametrize("name", available())
def test_agents_of_discrete_actions_are_told_from_those_of_vectors(name):
    agent = next(iter(presets(name).values()))
    kind = (
        "discrete" if isinstance(agent, TableAgent) else "vectors" if isinstance(agent, ActorAgent) else "any"
    )
    assert index.agent(name)["actions"] == kind


@pytest.mark.parametrize(
    ("agent", "preset", "found"),
    [
        (None, None, ("dqn", None)),
        (None, "adam", ("dqn", "adam")),
        (None, "rem-online", ("rem", "online")),
        ("rem", "online", ("rem", "online")),
    ],
)
def test_who_collects_is_dqn_or_whom_the_preset_names(agent, preset, found):
    assert index.player(agent, preset) == found


def test_an_unknown_preset_is_told_the_likely_one():
    with pytest.raises(UsageError, match='did you mean "dqn-nature"'):
        index.player(None, "dqn-natur")
