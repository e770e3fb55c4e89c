"""The study of section 6 in miniature, on real MuJoCo: players, their ranking, their logs, Figure 8."""

import csv
import json

import numpy as np
import pytest

from little import random_play
from optimist.cli import main
from optimist.data import Dataset, Recorder, Spec
from optimist.errors import RunError
from optimist.studies.final_buffer import FinalBuffer, mean_and_deviation, panels, ranked

pytestmark = pytest.mark.usefixtures("quick_compilation")
SPEC = Spec((2, 1, 1), "uint8", actions=2)
MINIATURE = (
    "study run final-buffer --tasks Hopper --players 3 --kept 2 --steps 120 --lanes 2 --updates 6 "
    "--evaluate-every 3 --episodes 1 --out"
)


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
    players = ranked(recording(tmp_path, {4: 50.0, 7: 200.0, 1: 100.0}))
    assert [player.seed for player in players] == [7, 1, 4]
    # The last tenth is rows 180 to 199: 200 times their mean share of 200, and all rows' for the whole log.
    assert players[0].final_return == pytest.approx(200 * 189.5 / 200, rel=1e-4)
    assert players[0].mean_return == pytest.approx(200 * 99.5 / 200, rel=1e-4)


def test_curves_are_means_and_deviations_over_seeds(tmp_path):
    rows = [
        (5, seed, n, value, 9)
        for seed, values in ((1, (2, 4)), (3, (6, 8)))
        for n, value in enumerate(values)
    ]
    text = "\n".join(
        ",".join(map(str, row)) for row in [("step", "seed", "episode", "return", "length"), *rows]
    )
    (tmp_path / "episodes.csv").write_text(text + "\n")
    assert mean_and_deviation(tmp_path) == {5: (5.0, 2.0)}


def test_a_figure_of_nothing_is_refused(tmp_path):
    with pytest.raises(RunError, match="holds no runs of this study yet"):
        panels(FinalBuffer(), tmp_path)


def mean_complete(episodes) -> float:
    return episodes.returns[~episodes.cut].mean()


def test_the_whole_study_in_miniature(tmp_path, capsys):
    assert main([*MINIATURE.split(), str(tmp_path)]) == 0
    home = tmp_path / "Hopper"
    data = Dataset.open(home / "data")
    assert len(data) == 3 * 120 and data.provenance["environment"] == "mujoco/Hopper"
    kept = json.loads((home / "players.json").read_text())
    assert [player["seed"] for player in kept] == [player.seed for player in ranked(data)[:2]]
    points = list(csv.DictReader((tmp_path / "figure8.csv").read_text().splitlines()))
    assert [(row["agent"], row["step"]) for row in points] == [
        (agent, step) for agent in ("ddpg", "td3", "bcq") for step in ("3", "6")
    ]
    in_data = np.mean([mean_complete(data.played_by(player["seed"]).episodes) for player in kept])
    assert [float(row["data_return"]) for row in points] == pytest.approx([in_data] * 6, abs=0.01)
    assert (tmp_path / "figure8.png").stat().st_size > 10_000
    words = capsys.readouterr().out
    assert main([*MINIATURE.split(), str(tmp_path)]) == 0  # all is there: nothing is played or trained again
    assert words.endswith(capsys.readouterr().out)
