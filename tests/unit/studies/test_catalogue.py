"""The catalogue: which rows its studies have, and that the published files of studies are cuts of them."""

from pathlib import Path

import pytest

from optimist.cli.main import main
from optimist.studies import study_file
from optimist.studies.status import read_record

RESULTS = Path(__file__).parents[3] / "results"

# Imitation, imitation of the best episodes, and the two agents that fall least stand in every study of
# offline agents, unless there is a reason.
ROWS = {"Cloning", "Cloning the best tenth", "Minimum target", "C51"}
WITHOUT = {
    "epsilon-and-heads": "the study asymptotic has them on the same logs",
    "bounded-targets": "the studies asymptotic and exploration have them on the same logs",
    "selection": "it compares rules of choice, not agents",
    "demo": "it takes minutes",
    "online": "its agents play",
    "random-scores": "its agents play",
    "final-buffer": "it has actions that are vectors: cloning, and no agents of discrete actions",
}


@pytest.mark.parametrize("name", sorted(set(study_file.catalogue()) - set(WITHOUT)))
def test_imitators_and_the_agents_that_fall_least_stand_beside_the_others(name):
    for job in study_file.load(name, "mini").jobs():
        if job.label == "Cloning the best tenth":
            assert (job.agent, job.share) == ("behaviour_cloning", {"best": 0.1})
    assert set(study_file.load(name, "mini").agents) >= ROWS


def test_imitators_stand_beside_the_agents_of_continuous_control():
    assert set(study_file.load("final-buffer", "mini").agents) >= {"Cloning", "Cloning the best tenth"}


# The published files with fewer games than the study, and the settings in which they differ.
CUTS = {
    # Several runs share the device; where a log is kept changes no batch.
    "ten-times-the-log/other-games.toml": ("ten-times-the-log", "mini", {"feed"}),
    # Players and agents are evaluated more rarely, for the clock.
    "final-buffer/three-tasks.toml": ("final-buffer", "paper", {"evaluate_every"}),
}


@pytest.mark.parametrize("file", CUTS)
def test_a_published_cut_has_runs_of_the_study(file):
    name, scale, may_differ = CUTS[file]
    whole = {settings(job, may_differ) for job in study_file.load(name, scale).jobs()}
    added = ROWS if name == "final-buffer" else set()  # the paper has no imitators in Figure 8
    for job in study_file.load(str(RESULTS / file), scale).jobs():
        assert job.label in added or settings(job, may_differ) in whole, job.name


def settings(job, may_differ: set[str]) -> str:
    """All that decides what a run learns, but for these settings of the training."""
    asked = job.wanted
    training = {key: value for key, value in asked["training"].items() if key not in may_differ}
    return repr((job.label, job.view, job.share, job.kept, job.data, asked | {"training": training}))


@pytest.fixture
def runs(tmp_path):
    """The runs that a command would make."""

    def named(*words: str) -> list[str]:
        assert main(["study", "run", *words, "--prepare", "--out", str(tmp_path / "study")]) == 0
        return [job.name for job in read_record(tmp_path / "study").jobs if job.label]

    return named


def test_some_agents_of_a_study_are_runs_in_the_same_folders(runs):
    seaquest = ["multi-network", "--environments", "minatar_jax/seaquest"]
    whole, some = runs(*seaquest), runs(*seaquest, "--agents", "REM, 4 networks; QR-DQN")
    assert some == [name for name in whole if name.endswith(("/rem-4-networks", "/qr-dqn"))]
    assert len(some) == 2 and len(runs("multi-network", "--agents", "REM, 4 heads")) == 5


def test_some_parts_of_the_data_of_a_study(runs):
    words = ["--agents", "Cloning,C51", "--parts", "1%,10%", "--environments", "minatar_jax/seaquest"]
    found = runs("dataset-size", *words)
    assert len(found) == 4 and {name.split("/")[2] for name in found} == {"1", "10"}


def test_online_the_player_that_is_100_percent_is_always_run(runs):
    found = runs("online", "--environments", "minatar_jax/seaquest", "--agents", "REM", "--parts", "all")
    assert [name.split("/")[-1] for name in found] == ["dqn-nature", "rem"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--agents", "REN"], 'study dataset-size has no agent "REN": did you mean "REM"?; separate names'),
        (["--parts", "15%"], 'study dataset-size has no part "15%": '),
    ],
)
def test_an_agent_or_a_part_that_a_study_lacks_is_named(words, complaint, capsys):
    assert main(["study", "run", "dataset-size", "--dry-run", *words]) == 2
    assert complaint in capsys.readouterr().err
