"""A run takes its share of the memory it was given: by a cgroup, a scheduler or the machine."""

import os

import pytest

from little import pixels
from optimist.data.sampling import Sampler
from optimist.training import feeding, memory

GIB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose cgroups are files of ours; no scheduler or engine has spoken."""
    monkeypatch.setattr(memory, "MOUNTED", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "MEMBERSHIP", tmp_path / "membership")
    for name in [name for name in os.environ if name.startswith(("SLURM_", "OPTIMIST_RUNS"))]:
        monkeypatch.delenv(name)

    def place(membership: str, **limits: str) -> None:
        (tmp_path / "membership").write_text(membership)
        for path, text in limits.items():
            file = tmp_path / "cgroup" / path.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return place


WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_without_any_limit_it_is_the_machine(machine):
    assert memory.host_bytes() == WHOLE
    machine("0::/job\n", **{"job__memory.max": "max\n"})
    assert memory.host_bytes() == WHOLE


def test_the_smallest_of_the_cgroups_around_the_process_counts(machine):
    machine(
        "0::/job/step\n",
        **{"memory.max": "3000", "job__memory.max": "1000", "job__step__memory.max": "max"},
    )
    assert memory.host_bytes() == 1000
    machine("0::/job/step\n", **{"job__step__memory.max": "500"})
    assert memory.host_bytes() == 500
    machine("0::/other\n")
    assert memory.host_bytes() == 3000


def test_the_first_version_of_cgroups_counts_too(machine):
    machine(
        "5:cpu:/x\n4:memory:/pod/run\n0::/\n",
        **{"memory__pod__memory.limit_in_bytes": "700", "memory__x__memory.limit_in_bytes": "1"},
    )
    assert memory.host_bytes() == 700


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"SLURM_MEM_PER_NODE": "64"}, 64 * 2**20),
        ({"SLURM_MEM_PER_NODE": "0"}, WHOLE),
        ({"SLURM_MEM_PER_CPU": "16", "SLURM_CPUS_ON_NODE": "3"}, 48 * 2**20),
        ({"SLURM_MEM_PER_CPU": "16"}, WHOLE),
    ],
)
def test_a_schedulers_limit_counts_where_no_cgroup_enforces_it(machine, monkeypatch, words, expected):
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    assert memory.host_bytes() == expected


def test_runs_that_share_a_machine_share_its_memory(machine, monkeypatch):
    machine("0::/\n", **{"memory.max": str(4 * GIB)})
    assert memory.available_bytes() == 4 * GIB
    monkeypatch.setenv(memory.RUNS_PER_MACHINE, "4")
    assert memory.available_bytes() == GIB


def test_the_feed_keeps_to_the_share(machine, monkeypatch, tmp_path):
    dataset = pixels(tmp_path / "log")
    frames = dataset.timeline.frame_count * dataset.spec.frame_bytes
    machine("0::/\n", **{"memory.max": str(4 * frames)})
    samplers = [Sampler(dataset, batch=4, gamma=0.99, seed=0)]
    assert isinstance(feeding.feed_of(samplers), feeding.DeviceFeed)
    monkeypatch.setenv(memory.RUNS_PER_MACHINE, "3")  # a third of it, of which frames may take half
    assert isinstance(feeding.feed_of(samplers), feeding.StreamedFeed)
