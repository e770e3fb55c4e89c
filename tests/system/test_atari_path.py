"""The whole path on a real Atari game, in miniature: collect, go on, inspect, train, evaluate, watch."""

import csv
from importlib.resources import files

import numpy as np
import pytest
from PIL import Image

from optimist.cli.main import main
from optimist.data import Dataset
from optimist.data.verify import verify
from optimist.studies.scores import normalisation as reference
from optimist.training.storage.rows import read_episodes
from optimist.training.storage.run_folder import read_config

SMALL = ["--network.torso", "mlp"]  # the paper's network takes minutes here
COLLECT = ["collect", "atari/Breakout", "--preset", "dqn-nature", "--lanes", "4", "--warm-up", "160"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    out = tmp_path_factory.mktemp("atari") / "log"
    for steps in ("240", "400"):  # stopped and gone on with
        assert main([*COLLECT, *SMALL, "--window", "1000", "--out", str(out), "--steps", steps]) == 0
    return out


def test_the_log_is_whole_and_says_what_played_where(log):
    assert verify(log) == []
    data = Dataset.open(log)
    assert len(data) == 400
    assert data.spec.observation_shape == (84, 84, 4)
    assert data.provenance["environment"] == "atari/Breakout"
    assert data.provenance["versions"]["rom_md5"] == "f34f08e5eb96e500e851a80be3277a56"
    settings = read_config(log / "agent")
    assert settings["agent"]["optimizer"]["name"] == "rmsprop"
    assert settings["agent"]["target_period"] == 2_000


@pytest.mark.slow
def test_an_agent_learns_from_it_and_is_evaluated_by_steps(log, tmp_path, capsys):
    run = tmp_path / "run"
    words = ["train", "rem", str(log), "--out", str(run), "--columns", "4", "--steps", "6", *SMALL]
    words += [
        "--evaluate-every",
        "3",
        "--evaluation-steps",
        "700",
        "--epsilon",
        "0.5",
        "--sampling",
        "five-buffers",
    ]
    assert main(words) == 0
    assert "each seed's best of n" in capsys.readouterr().out
    rows = read_episodes(run)
    for step in (3, 6):
        lengths = [row.length for row in rows if row.step == step]
        assert sum(lengths[:-1]) < 700 <= sum(lengths)
    assert main(["evaluate", str(run), "--steps", "300", "--epsilon", "0.5"]) == 0
    assert main(["play", str(run), "--frames", "8", "--out", str(tmp_path / "film.gif")]) == 0
    with Image.open(tmp_path / "film.gif") as film:
        assert film.size == (320, 420)
        assert len(np.unique(np.asarray(film.convert("RGB")).reshape(-1, 3), axis=0)) > 5  # in colour


def test_the_log_goes_out_as_public_files_and_comes_back(log, tmp_path, capsys):
    logs, again = tmp_path / "Breakout" / "1", tmp_path / "again"
    assert main(["data", "export", "dqn-replay", str(log), "--out", str(logs), "--capacity", "150"]) == 0
    assert main(["data", "verify", str(logs)]) == 0
    assert main(["data", "import", "dqn-replay", str(logs), "--out", str(again)]) == 0
    assert "environment: atari/Breakout" in capsys.readouterr().out
    assert verify(again) == []
    theirs, ours = Dataset.open(again), Dataset.open(log)
    assert theirs.provenance["environment"] == "atari/Breakout"
    assert theirs.spec == ours.spec  # the game says how many actions there are, used or not
    assert 0 < len(theirs) <= len(ours)  # unfinished episodes cannot be told apart in one stream
    words = ["train", "dqn", str(again), "--out", str(tmp_path / "run"), "--environment", "none", *SMALL]
    assert main([*words, "--steps", "3", "--feed", "compressed"]) == 0


def test_actions_that_the_game_does_not_know_are_refused(log, tmp_path, capsys):
    logs = tmp_path / "Breakout" / "1"
    assert main(["data", "export", "dqn-replay", str(log), "--out", str(logs), "--capacity", "150"]) == 0
    words = ["data", "import", "dqn-replay", str(logs), "--out", str(tmp_path / "again")]
    assert main([*words, "--actions-count", "3"]) == 3
    assert "action" in capsys.readouterr().err
    assert main([*words, "--environment", "atari/Brekout"]) == 2
    assert 'did you mean "Breakout"' in capsys.readouterr().err


@pytest.mark.slow
def test_options_of_the_game_travel_with_the_log(tmp_path):
    words = ["collect", "atari/Pong", "--out", str(tmp_path), "--steps", "8", "--lanes", "2", *SMALL]
    assert main([*words, "--full-action-set", "yes", "--no-ops", "30"]) == 0
    data = Dataset.open(tmp_path)
    assert data.provenance["environment"] == "atari/Pong?no_ops=30&full_action_set=yes"
    assert data.spec.actions == 18


@pytest.mark.slow
def test_random_play_is_a_study_that_scores_game_by_game_and_goes_on_where_it_stopped(tmp_path, capsys):
    file, out = tmp_path / "little.toml", tmp_path / "out"
    text = files("optimist.studies").joinpath("catalog/random-scores.toml").read_text("utf-8")
    file.write_text(f"{text}evaluation_steps = 1_200\n")  # instead of the paper's 125,000

    def score(games):
        return main(["study", "run", str(file), "--out", str(out), "--workers", "1", "--environments", games])

    assert score("atari/Breakout") == 0
    first = (out / "results/all/per_game.csv").read_text()
    assert score("atari/Breakout,atari/Pong") == 0
    assert "1 of 2 runs are done already" in capsys.readouterr().err
    both = (out / "results/all/per_game.csv").read_text()
    rows = {row["game"]: row for row in csv.DictReader(both.splitlines())}
    assert first.splitlines()[1] in both
    assert -21 <= float(rows["atari/Pong"]["last_score"]) < -18
    assert 0 <= float(rows["atari/Breakout"]["last_score"]) < 4


def test_reference_scores_are_of_the_sixty_games():
    from optimist.envs.atari import games

    assert list(reference.published()) == games()
    assert float(reference.published()["Pong"]["human"]) == 14.6
    with open(reference.REFERENCE / "atari_random_sticky.csv") as stream:
        assert [row["game"] for row in csv.DictReader(stream)] == sorted(games())
    assert set(reference.random_with_sticky_actions()) == set(games())
