"""A page of results/ has one command, and the studies that it compares have the logs that it says."""

import csv
import json
import sys

import pytest
from results.__main__ import main
from results.library import publish
from results.library.scores import RESULTS, opened, read


@pytest.mark.parametrize("words", [[], ["--nothing"], ["nowhere"]])
def test_a_command_that_names_no_page_is_told_the_pages(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["results", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and "PAGE" in capsys.readouterr().err


def test_a_table_of_a_page_follows_from_its_data():
    assert publish.table("d3rlpy", "differences.csv") == (RESULTS / "d3rlpy/differences.csv").read_text()


def test_a_compressed_table_is_read_by_its_plain_name():
    assert not (RESULTS / "asymptotic/scores.csv").exists()
    with opened("asymptotic/scores.csv") as file:
        assert next(csv.reader(file)) == ["game", "agent", "seed", "step", "score"]


def test_results_stay_small():
    files = [path for path in RESULTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < 6 * 2**20
    assert [path.name for path in files if path.suffix == ".csv" and path.stat().st_size > 100_000] == []


def evaluations_of(file: str, game: str) -> dict[int, dict[int, float]]:
    """By player and step."""
    by_player: dict[int, dict[int, float]] = {}
    for row in read(file):
        if row["game"] == game:
            by_player.setdefault(int(row["seed"]), {})[int(row["step"])] = float(row["score"])
    return by_player


def test_the_first_tenths_of_long_logs_are_of_the_same_players():
    """Data quality has every evaluation of the short logs' players, the other studies each player's best."""
    decay = publish.analysis("ten-times-the-log")
    for game in decay.bounds("ten-times-the-log"):
        short = evaluations_of("dataset-quality/players.csv", game)
        study = decay.SHORT.get(game, "asymptotic")
        best = json.loads((RESULTS / study / "logs.json").read_text())[game]["players"]
        assert {int(seed): score for seed, score in best.items()} == {
            seed: max(scores.values()) for seed, scores in short.items()
        }, (game, study)
        for seed, scores in evaluations_of("ten-times-the-log/player-scores.csv", game).items():
            assert [scores[step] for step in (250_000, 500_000)] == [
                short[seed][step] for step in (250_000, 500_000)
            ]


def test_an_agent_without_runs_on_the_right_logs_has_empty_cells():
    decay = publish.analysis("ten-times-the-log")
    breakout, games = "minatar_jax/breakout", decay.bounds("ten-times-the-log")
    whole = [agent for agent, data in decay.all_curves() if data == "whole"]
    without = {agent for agent in whole if breakout not in decay.first_tenths(agent)}
    assert without == {"C51", "DQN (Nature)"}
    for agent in whole:
        sides = [("last", decay.first_tenths(agent))]
        assert (decay.cells(sides, [breakout], decay.mean) == [""] * 3) == (agent in without)
        assert (decay.cells(sides, games, decay.iqm) == [""] * 3) == (agent in without)
