"""The study of section 6 in miniature, on real MuJoCo: players, their ranking, their logs, Figure 8."""

import csv

import numpy as np
import pytest

from little import random_play
from optimist.data import Dataset, Recorder, Spec
from optimist.studies import study_file
from optimist.studies.job import final_returns, perform_job, ranked
from optimist.studies.report.figures.curves import curve_grid
from optimist.studies.report.study_report import write_findings
from optimist.studies.results.findings import find
from optimist.studies.status import write_jobs
from optimist.training.storage.run_folder import read_config

SPEC = Spec((2, 1, 1), "uint8", actions=2)


def recording(path, finals: dict[int, float]) -> Dataset:
    """Players with one lane each, whose episodes of two steps earn more and more, up to these returns."""
    provenance = {"seeds": list(finals), "collection": {"lanes": 1}}
    with Recorder(path, SPEC, lanes=len(finals), provenance=provenance) as recorder:
        for row, step in enumerate(random_play(SPEC, rows=200, lanes=len(finals))):
            reward = np.array(list(finals.values()), np.float32) * row / 200 / 2
            ends = np.full(len(finals), row % 2 == 1)
            # Frames that lead on from one another: all black.
            recorder.add(0 * step[0], step[1], reward, ends, ~ends & False, 0 * step[5])
    return Dataset.open(path)


def test_the_best_players_are_those_who_ended_best(tmp_path):
    log = recording(tmp_path, {4: 50.0, 7: 200.0, 1: 100.0})
    assert ranked(log) == [7, 1, 4]
    # The last tenth is rows 180 to 199: 200 times their mean share of 200.
    assert final_returns(log.played_by(7)).mean() == pytest.approx(200 * 189.5 / 200, rel=1e-4)


def test_an_episode_longer_than_the_last_tenth_counts_where_it_ended(tmp_path):
    """As in Freeway: 2,500 steps each, of which the last tenth of a lane has 3,125, and no whole one."""
    with Recorder(tmp_path, SPEC, lanes=1, provenance={"seeds": [0], "collection": {"lanes": 1}}) as recorder:
        for row, step in enumerate(random_play(SPEC, rows=125, lanes=1)):
            ends = np.array([row in (59, 119)])  # the last tenth begins at row 112.5
            reward = np.float32([1.0 if row < 60 else 2.0])
            recorder.add(0 * step[0], step[1], reward, ends, ~ends & False, 0 * step[5])
    assert final_returns(Dataset.open(tmp_path)).tolist() == [120.0]


def test_a_point_is_the_mean_and_the_deviation_over_seeds_where_all_have_one():
    (axes,) = curve_grid(
        {"Hopper": {"BCQ": {1: {5: 3.0, 9: 1.0}, 3: {5: 7.0}}}},
        {},
        xlabel="",
        columns=1,
        window=1,
        traces=False,
    ).axes
    assert (list(axes.lines[0].get_xdata()), list(axes.lines[0].get_ydata())) == ([5], [5.0])
    (band,) = axes.collections
    assert set(band.get_paths()[0].vertices[:, 1]) == {3.0, 7.0}  # one deviation around it is 2


def mean_complete(episodes) -> float:
    return episodes.returns[~episodes.cut].mean()


@pytest.mark.slow
def test_the_whole_study_in_miniature(tmp_path):
    """As the catalogue has it, but for its sizes."""
    agents = study_file.load("final-buffer", "paper").agents
    sizes = {"BCQ": {"network.hidden": "16,8", "vae_hidden": "16,8"}}
    table = {
        "agents": {
            label: {**said, "options": sizes.get(label, {"network.hidden": "16,8"})}
            for label, said in agents.items()
        },
        "figures": ["spread"],
        "scales": {
            "little": {
                "environments": ["mujoco/Hopper"],
                "recipe": "control",
                "collect": {
                    "agent": "ddpg",
                    "options": {"network.hidden": "16,8"},
                    "seeds": 3,
                    "kept": 2,
                    "settings": {"steps": 200, "lanes": 2, "warm_up": 50},
                },
                "training": {"steps": 6, "evaluate_every": 3, "episodes": 1},
            }
        },
    }
    study = study_file.read("little", table, "little")
    write_jobs(tmp_path, study.title, study.jobs(), figures=study.figures)
    for job in study.jobs():
        perform_job(job, tmp_path)
    data = Dataset.open(tmp_path / "logs" / "mujoco-hopper")
    assert len(data) == 3 * 200 and data.provenance["environment"] == "mujoco/Hopper"
    best = ranked(data)[:2]
    for agent in ("ddpg", "td3", "bcq"):
        config = read_config(tmp_path / "runs" / "mujoco-hopper" / "all" / agent)
        assert (config["seeds"], config["training"]["data_per_seed"]) == (best, "own")
    written, _ = write_findings(tmp_path)
    assert {"report.html", "spread.png", "scores.csv"} <= {path.name for path in written}
    rows = csv.DictReader((tmp_path / "results" / "all" / "scores.csv").read_text().splitlines())
    assert [(row["agent"], int(row["seed"]), row["step"]) for row in rows] == [
        (agent, seed, step)
        for agent in ("DDPG", "TD3", "BCQ")
        for seed in sorted(best)
        for step in ("3", "6")
    ]
    in_data = np.mean([mean_complete(data.played_by(seed).episodes) for seed in best])
    found = find(tmp_path)
    assert found.logs["mujoco/Hopper"].average == {"all": pytest.approx(in_data, rel=1e-6)}
    assert found.by.yardstick == "the logged DDPG"
