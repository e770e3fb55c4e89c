"""The catalogue: which rows its studies have, and that the published files of studies are cuts of them."""

from pathlib import Path

import pytest

from optimist.studies import study_file

RESULTS = Path(__file__).parents[2] / "docs/results"

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


# The published files with fewer games, agents or parts than the study, and the settings in which they differ.
CUTS = {
    "multi-network/study.toml": ("multi-network", "mini", set()),
    "dataset-size/larger-parts.toml": ("dataset-size", "mini", set()),
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
    asked = job.asked()
    training = {key: value for key, value in asked["training"].items() if key not in may_differ}
    return repr((job.label, job.view, job.share, job.kept, job.data, asked | {"training": training}))
