"""Every command works from the shell, and every mistake is one line that says what to do."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import optimist
from little import GAME, largest_file, outcome, played, random_play, small_words
from optimist.cli.main import main
from optimist.data import Recorder, Spec
from optimist.envs.atari import ROMS
from optimist.training.run import load_run
from optimist.training.storage.rows import read_episodes
from patience import PATIENCE

TRAIN = ["--steps", "20", "--evaluate-every", "10", "--episodes", "2", "--seeds", "0,1", *small_words("dqn")]


def flip_a_byte(path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A sound log and a run trained on it, and all that a person may take for one of them."""
    root = tmp_path_factory.mktemp("places")
    log, run = played(root / "log", rows=60), root / "run"
    assert main(["train", "dqn", str(log), "--out", str(run), *TRAIN]) == 0
    played(root / "atari", game="atari/Pong", rows=3)
    (root / "empty").mkdir()
    (root / "empty" / "folder.gif").mkdir()
    (root / "file").write_text("not a folder")
    (root / "table").mkdir()
    (root / "table" / "log.csv").write_text("x,action,reward\n1,0,0.5\n")
    pong = "game,agent,seed,score\nPong,REM,0,15\n"
    (root / "scores_csv").write_text(pong)
    (root / "gap_csv").write_text(f"{pong}Pong,QR-DQN,0,9\nQbert,QR-DQN,0,9\n")
    for name in ("bad_steps", "bad_frames"):
        shutil.copytree(log, root / name)
    flip_a_byte(root / "bad_steps" / "steps-000000.arrow")
    flip_a_byte(root / "bad_frames" / "frames-000000.arrow")
    Recorder(root / "unborn", Spec((2,), "float32", actions=2), lanes=1)
    with Recorder(
        root / "arms", Spec((2,), "float32", action_low=(-1.0,), action_high=(1.0,)), lanes=1
    ) as arms:
        arms.add(np.zeros((1, 2)), np.zeros((1, 1)), [0.0], [True], [False], np.zeros((1, 2)))
    for name in ("unsaved", "ruined", "garbled", "tangled"):
        shutil.copytree(run, root / name)
    for saved in ("checkpoints", "policies"):
        shutil.rmtree(root / "unsaved" / saved)
    for path in (root / "ruined" / "checkpoints").iterdir():
        flip_a_byte(path)
    (root / "garbled" / "config.toml").write_bytes(b"\xff\xfe\x00")
    (root / "tangled" / "config.toml").unlink()
    (root / "tangled" / "config.toml").mkdir()
    return root


MISTAKES = [
    # the command
    ("trian", 2, 'there is no command "trian": did you mean "train"?'),
    ("--verson", 2, 'has no option "--verson": did you mean "--version"?'),
    ("data inof {log}", 2, 'there is no "data inof": did you mean "info"?'),
    ("select", 2, "name at least one run"),
    ("data export rlds {log} --out {out}", 2, 'the format "rlds" can only be read'),
    ("select {nowhere}", 4, "is not a run folder"),
    ("select {log} --rule best", 2, 'there is no estimator "best"'),
    # an agent and its settings
    ("train", 2, "name an agent"),
    ("train rme {log}", 2, 'there is no agent "rme": did you mean "rem"?'),
    ("train rem", 2, "name a dataset's folder"),
    ("train {log} cql", 2, "the agent comes first, then the dataset: optimist train cql /"),
    ("train rem {log} {log}", 2, "has no argument"),
    ("train rem {log} --preset nature", 2, 'rem has no preset "nature"'),
    ("train rem {log} --recipe huge", 2, 'there is no recipe "huge": known: auto, control, mini, paper, '),
    ("train bc {log} --lr 1e-3", 2, 'did you mean "behaviour_cloning"?'),
    ("train ppo {log}", 2, 'there is no agent "ppo": known: averaged_ensemble_dqn, '),
    ("train rem {log} --lr 1e-3", 2, 'has no option "--lr": did you mean "--optimizer.learning-rate"?'),
    ("train rem {log} --network.torso resnet", 2, 'there is no torso "resnet"'),
    ("train rem {log} --columns 0", 2, "0 columns"),
    ("train rem {log} --target-period 0", 2, "target_period is 0"),
    ("train rem {log} --optimizer.decay 0.9", 2, 'has no option "--optimizer.decay"'),
    # how it is trained
    ("data report {log}", 2, "name the page, an HTML file: --out PAGE"),
    ("data report --out {out}", 2, "name a dataset's folder"),
    ("data report {nowhere} --out {out}", 3, "does not exist"),
    ("train rem {log} --steps 0", 2, "steps is 0: it must be a whole number above 0"),
    ("train rem {log} --steps", 2, "--steps needs a value: --steps int"),
    ("train rem {log} --batch 0", 2, "batch is 0"),
    ("train rem {log} --gamma 2", 2, "gamma is 2.0: it must be between 0 and 1"),
    ("train rem {log} --evaluation-epsilon -1", 2, "evaluation_epsilon is -1.0: it must be between 0"),
    ("train rem {log} --reward-scale 0", 2, "reward_scale is 0.0: it must be above 0"),
    ("train rem {log} --observations standart", 2, 'no observations "standart": did you mean "standard"?'),
    ("train rem {log} --memory-gib 0", 2, "memory_gib is 0.0"),
    ("train rem {log} --checkpoint-seconds -1", 2, "checkpoint_seconds is -1.0"),
    (
        "train dqn {log} {trained} --feed devise",
        2,
        'there is no feed "devise": did you mean "device"?',
    ),
    ("train rem {log} --seeds 99999999999", 2, "from 0 to 4294967295"),
    ("train rem {log} --environment minatar/Breakout", 2, 'did you mean "breakout"?'),
    ("train rem {log} --environment minatar/freeway", 2, "minatar/freeway has frames of (10, 10, 7)"),
    # the data
    ("train rem {nowhere}", 3, "does not exist; check the path, or make a dataset"),
    ("train rem {empty}", 3, "has no manifest.json (is it a dataset?)"),
    ("train rem {table}", 3, "holds parquet logs; import them first: optimist data import parquet"),
    ("train rem {log} --out=", 2, "--out: it is empty: name a path"),
    ("train rem {unborn}", 3, "is empty: record into it first"),
    ("train rem {bad_steps}", 3, "steps-000000.arrow is damaged"),
    ("train dqn {bad_frames} {trained}", 3, "frames-000000.arrow is damaged"),
    ("train rem {arms}", 3, "Rem chooses among discrete actions"),
    ("train dqn {arms}", 3, "vector actions of size 1: use an agent such as td3"),
    ("train td3 {log}", 3, "Td3 chooses action vectors; this data has 3 discrete actions"),
    ("train td3 {arms} --environment gym/Pendulum-v1", 2, "gym/Pendulum-v1 has frames of (3,) and"),
    ("evaluate {run} --environment gym/Pendulum-v1", 2, "action vectors of size 1; the data has frames of"),
    ("collect mujoco/halfcheetah --out {out}", 2, 'did you mean "HalfCheetah"?'),
    ("train rem {log} --first 0", 3, "a view of 0 transitions is empty"),
    ("data info", 2, "name a dataset's folder"),
    ("data info {nowhere}", 3, "does not exist"),
    ("data info {bad_steps}", 3, "steps-000000.arrow is damaged"),
    ("data verify", 2, "name a dataset's folder, or logs"),
    ("data verify {nowhere}", 3, "1 problems"),
    ("data verify {bad_frames}", 3, "1 problems; restore those files from a copy"),
    # other people's logs
    ("data import", 2, "name a format: dqn-replay"),
    (
        "data import dqn-reply {empty} --out {nowhere}",
        2,
        'there is no format "dqn-reply": did you mean "dqn-',
    ),
    ("data import dqn-replay", 2, "name the logs: a path, or an address such as gs://..."),
    (
        "data import {table} {nowhere}",
        2,
        "is no format; the dataset's folder follows --out: optimist data import",
    ),
    ("data import dqn-replay {empty}", 2, "name the dataset's folder: --out DATA"),
    ("data import dqn-replay {nowhere} --out {nowhere}2", 3, "does not exist"),
    ("data import npz {nowhere}.npz --out {nowhere}2", 3, "nowhere.npz does not exist; check its spelling"),
    ("data import dqn-replay {file} --out {nowhere}2", 3, "is a file; name the folder"),
    ("data import dqn-replay {log} --out {nowhere}2", 3, "holds no DQN Replay logs"),
    ("data import dqn-replay {empty} --out {nowhere}2 --action 4", 2, 'did you mean "--actions-count"?'),
    ("data import dqn-replay odd://x/y --out {nowhere}2", 3, "odd://x/y cannot be reached"),
    ("data export", 2, "name a format: dqn-replay"),
    ("data export minary {log} --out {nowhere}2", 2, 'there is no format "minary": did you mean "minari"?'),
    ("data export dqn-replay {log}", 2, "name a folder for the logs: --out FOLDER"),
    (
        "data export {log} npz --out {nowhere}",
        2,
        "the format comes first, then the dataset: optimist data export npz",
    ),
    ("data export dqn-replay {log} --out {nowhere}2", 3, "do not fit these logs"),
    # the run's folder
    ("train dqn {log} --out {run} --steps 20", 4, "training.evaluate_every: 10 saved, 5000 requested"),
    ("train dqn {log} --out {file}", 6, "cannot make"),
    ("demo --out {log}", 4, "holds a dataset (manifest.json), so a study cannot be written there"),
    ("study run asymptotic --scale tiny --out {run}", 4, "holds a run (config.toml), so a study cannot"),
    ("train dqn {log} --out {log}", 4, "holds a dataset (manifest.json), so a run cannot be written there"),
    ("train dqn {log} --out {ruined} {trained}", 4, "is damaged): start again with --restart"),
    ("train dqn {log} --out {garbled} {trained}", 4, "config.toml cannot be read"),
    # evaluation
    ("evaluate", 2, "name a run's folder"),
    ("evaluate {nowhere}", 4, "is not a run folder, it does not exist: name the --out of optimist train"),
    ("evaluate {log}", 4, "is not a run folder, it is a dataset: name a run that learned from it"),
    ("report {log}", 2, "is a dataset, not a run: optimist data report /"),
    ("evaluate {unsaved}", 4, "has no checkpoint yet: train it first"),
    ("evaluate {ruined}", 4, "no checkpoint in"),
    ("evaluate {tangled}", 6, "config.toml: Is a directory"),
    ("evaluate {run} --episodes 0", 2, "0 episodes at epsilon 0.001"),
    ("evaluate {run} --epsilon 2", 2, "between 0 and 1"),
    ("evaluate {run} --episodes 1 --out {nowhere}/scores.csv", 6, "No such file or directory"),
    ("evaluate {run} --episodes 1 --out {empty}", 6, "Is a directory"),
    # films
    ("play", 2, "name a run's folder"),
    ("play {empty}", 4, "is not a run folder"),
    ("play {run} --seed 9", 2, "has no seed 9: it has 0, 1"),
    ("play {run} --frames 0", 2, "a film of 0 frames"),
    ("play {run} --frames 2 --fps 0", 2, "at 0 per second"),
    ("play {run} --frames 2 --out {file}/film.gif", 6, "cannot write"),
    ("play {run} --frames 2 --out {empty}/folder.gif", 6, "Is a directory"),
    ("play {run} --frames 2 --out {empty}", 2, "a film is a .gif or an .mp4 file, not empty: choose another"),
    ("play {run} --frames 2 --out film.avi", 2, "a film is a .gif or an .mp4 file, not film.avi"),
    # collection
    ("collect", 2, "name an environment: "),
    ("collect minatar/breakout", 2, "name the dataset's folder: --out DATA"),
    (
        "collect minatar/Breakout --out {out}",
        2,
        'no environment "minatar/Breakout": did you mean "breakout"?',
    ),
    ("collect breakout --out {out}", 2, '"breakout" is not of the form family/game'),
    ("collect gym/CartPole-v9 --out {out}", 2, 'did you mean "CartPole-v1"?'),
    ("collect minatar/breakout --out {run}", 3, "holds a run (config.toml), so a log cannot be written"),
    ("collect gym/Pendulum-v1 --out {out}", 3, "discrete actions"),
    ("collect minatar/breakout --agent sarsa --out {out}", 2, 'there is no agent "sarsa"'),
    ("collect minatar/breakout --steps 0 --out {out}", 2, "steps is 0"),
    ("collect minatar/breakout --lanes 0 --out {out}", 2, "lanes is 0"),
    ("collect minatar/breakout --epsilon 7 --out {out}", 2, "epsilon is 7.0"),
    ("study run asymptotics --out {out}", 2, 'there is no study "asymptotics": did you mean "asymptotic"?'),
    ("study run asymptotic --scale huge --out {out}", 2, 'has no scale "huge"'),
    ("study run asymptotic --scale tiny --workers 0 --out {out}", 2, "workers is 0: choose at least 1"),
    ("study run mine.toml --out {out}", 2, 'there is no study "mine.toml"'),
    ("study stauts {run}", 2, 'did you mean "status"?'),
    ("study status {run}", 4, "is not a study's folder"),
    ("study report {run} --normaliser dqn", 2, 'there is no normaliser "dqn"'),
    ("train rem {log} --data-per-seed mine --out {out}", 2, 'no data_per_seed "mine"'),
    ("train rem {log} --data-per-seed own --out {out}", 3, "no player with seed 0 was recorded"),
    ("collect minatar/breakout --out {log}", 4, "holds a recording without the run that made it"),
    ("collect minatar/breakout --out {file}", 6, "cannot make"),
    # Atari
    ("collect atari/ms_pacman --out {out}", 2, 'no environment "atari/ms_pacman": did you mean "MsPacman"?'),
    ("collect ALE/Breakout-v5 --out {out}", 2, 'there is no environment family "ALE"'),
    ("collect minatar/breakout --no-ops 3 --out {out}", 2, 'has no option "--no-ops"'),
    ("collect atari/Pong --preset dqn-natur --out {out}", 2, 'did you mean "dqn-nature"?'),
    ("collect atari/Pong --roms {nowhere} --out {out}", 2, "is not a folder"),
    ("collect atari/Pong --roms {empty} --out {out}", 2, "pong.bin is missing or empty"),
    ("train dqn {atari} --environment atari/SpaceInvaders", 2, "the data is from atari/Pong, not from"),
    ("train dqn {atari} --environment atari/Breakout", 2, "atari/Breakout has frames of (84, 84, 1) and 4"),
    ("train dqn {log} --sampling five", 2, 'no sampling "five": did you mean "five-buffers"?'),
    ("evaluate {run} --steps 0", 2, "an evaluation of 0 steps"),
    ("study run random-scores --environments atari/Pon --out {out}", 2, 'did you mean "Pong"?'),
    # scores
    ("scores", 2, "name scores by game, agent and seed"),
    ("scores {nowhere}", 3, "does not exist; name a CSV file with scores"),
    ("scores {empty}", 6, "Is a directory"),
    ("scores {scores_csv} --normaliser dqn", 2, 'no normaliser "dqn": did you mean "dqn-random"? or'),
    (
        "scores {scores_csv} --incomplete skip",
        2,
        '--incomplete has no value "skip": known: leave-out, refuse',
    ),
    ("scores {scores_csv} --recent 0", 2, "--recent 0: it must be at least 1"),
    ("scores {scores_csv} --agent RAM", 2, 'there are no scores of "RAM": did you mean "REM"?'),
    ("scores {scores_csv} --out {file}", 6, "cannot make"),
    (
        "scores {gap_csv}",
        3,
        "1 of 2 games is incomplete: Qbert (none of REM): add the rows, or leave these games out",
    ),
    ("collect atari/Pong?noops=3 --out {out}", 2, 'did you mean "no_ops"?'),
    ("collect minatar/breakout?no_ops=3 --out {out}", 2, "write minatar/breakout, it has none"),
    ("collect minatar/breakout --window 0 --out {out}", 2, "window is 0"),
    ("collect minatar/breakout --warm-up -1 --out {out}", 2, "warm_up is -1"),
    ("train rem {log} --evaluate-every 0", 2, "evaluate_every is 0"),
    ("train rem {log} --episodes 0", 2, "episodes is 0"),
    ("train rem {log} --fraction 2", 3, "a share of 2.0 makes no view"),
    ("train dqn {log} --evaluation-steps 0", 2, "evaluation_steps is 0"),
    # the demo
    ("demo --offline-steps 100 --evaluations 3 --out {out}", 2, "100 steps do not divide into 3 evaluations"),
    ("demo --seeds 0 --out {out}", 2, "seeds is 0"),
    ("demo --environment minatar/pong --out {out}", 2, 'no environment "minatar/pong"'),
    ("demo --out {file}", 6, "cannot make"),
]


@pytest.mark.parametrize(("line", "code", "phrase"), MISTAKES, ids=[line for line, _, _ in MISTAKES])
def test_a_mistake_is_one_line_with_its_remedy(line, code, phrase, places, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(ROMS, "")  # put back afterwards, whatever --roms says
    monkeypatch.chdir(tmp_path)
    names = {path.name: path for path in places.iterdir()}
    line = line.replace("{trained}", " ".join(TRAIN))
    words = [word.format(**names, nowhere=places / "nowhere", out=tmp_path / "out") for word in line.split()]
    assert main(words) == code
    complaint = capsys.readouterr().err
    assert complaint.startswith("optimist: ") and complaint.count("\n") == 1
    assert phrase in complaint
    assert "Traceback" not in complaint


def test_a_home_that_the_shell_leaves_is_found(places, tmp_path, monkeypatch, capsys):
    """bash does not expand the ~ in --out=~/page.html."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    assert main(["data", "report", str(places / "log"), "--out=~/page.html"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert (tmp_path / "home" / "page.html").exists()


def test_a_command_to_import_a_path_with_a_space_can_be_copied(tmp_path, capsys):
    (tmp_path / "my log.csv").write_text("x,action\n1,2\n")
    assert main(["train", "rem", str(tmp_path / "my log.csv")]) == 3
    assert f"optimist data import parquet '{tmp_path / 'my log.csv'}' --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", ["{csv} --action-low -1,-300", "--action-low=-1,-300 {csv}", "--action-low -1,-300 {csv}"]
)
def test_a_log_is_imported_with_a_bound_for_each_number_of_an_action(words, tmp_path):
    (tmp_path / "log.csv").write_text("x,dose,volts,reward,terminal\n1,0,-20.5,0.5,0\n2,1,5,1,1\n")
    given = words.format(csv=tmp_path / "log.csv").split()
    rest = ["--observations", "x", "--actions", "dose,volts", "--action-high", "40", "--truncations", "no"]
    assert main(["data", "import", *given, *rest, "--out", str(tmp_path / "log")]) == 0
    spec = optimist.open(tmp_path / "log").spec
    assert (spec.action_low, spec.action_high) == ((-1.0, -300.0), (40.0, 40.0))


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{optimist.__version__}\n"


def test_a_table_in_a_file_has_every_name_whole(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["study", "run", "asymptotic", "--dry-run"]) == 0
    assert " runs/minatar-jax-space-invaders/all/averaged-ensemble-dqn " in capsys.readouterr().out


def test_options_may_stand_before_the_words_they_are_about(places, tmp_path, capsys):
    words = [*TRAIN, "dqn", str(places / "log"), "--out", str(tmp_path)]
    assert main(["train", *words]) == 0
    assert outcome(tmp_path) == outcome(places / "run")


def test_the_same_command_again_is_done_at_once(places, capsys):
    before = outcome(places / "run")
    assert main(["train", "dqn", str(places / "log"), "--out", str(places / "run"), *TRAIN]) == 0
    assert outcome(places / "run") == before
    assert "trained in" in capsys.readouterr().out


def test_an_agent_is_called_by_any_spelling_of_its_name(capsys):
    """For the help and for the run."""
    pages = [(main(["train", name, "--help"]), capsys.readouterr().out) for name in ("qr-dqn", "QR_DQN")]
    assert pages[0] == (0, pages[1][1].replace("of QR_DQN:", "of qr-dqn:"))
    assert optimist.agents.preset("qr-dqn") == optimist.agents.preset("QR_DQN")


def test_evaluate_writes_every_episode_and_prints_a_table(places, tmp_path, capsys):
    """Those of another policy do not replace those of the last; scores are printed that cannot be kept."""
    run, out = tmp_path / "run", tmp_path / "episodes.csv"
    shutil.copytree(places / "run", run)
    assert main(["evaluate", str(run), "--episodes", "3", "--out", str(out)]) == 0
    rows = read_episodes(tmp_path)
    assert [row[:3] for row in rows] == [(20, seed, n) for seed in (0, 1) for n in range(3)]
    text = capsys.readouterr().out
    assert "after 20 steps" in text and "average return" in text and str(out) in text
    kept = min(int(path.name.split("-")[1].split(".")[0]) for path in (run / "policies").glob("step-*"))
    assert main(["evaluate", str(run), "--episodes", "2", "--step", str(kept)]) == 0
    assert not (run / "evaluation.csv").exists()
    assert f"\n{kept}," in (run / f"evaluation-{kept}.csv").read_text()
    (run / "evaluation.csv").mkdir()  # a folder that is read-only does not stop root
    capsys.readouterr()
    assert main(["evaluate", str(run), "--episodes", "1"]) == 0
    told = capsys.readouterr()
    assert "average return" in told.out and "every episode is in" not in told.out


def test_without_an_environment_nothing_is_recommended_that_needs_one(tmp_path, capsys):
    run = tmp_path / "a run"
    spec = Spec((4,), "float32", actions=2)
    with Recorder(tmp_path / "log", spec, lanes=1) as recorder:
        for step in random_play(spec, rows=40, lanes=1):
            recorder.add(*step)
    assert main(["data", "info", str(tmp_path / "log")]) == 0
    assert "vectors of 4 float32; 2 actions" in capsys.readouterr().out
    words = ["train", "dqn", str(tmp_path / "log"), "--steps", "2", *small_words("dqn")]
    assert main([*words, "--out", str(run)]) == 0
    told = capsys.readouterr().out
    assert "optimist play" not in told
    assert f"optimist select '{run}'\n" in told and "optimist evaluate" not in told  # to copy as it is
    assert f"optimist export '{run}' --to" in told
    assert main(["play", str(run)]) == 2
    assert "name one with --environment" in capsys.readouterr().err
    evaluate = ["evaluate", str(run), "--episodes", "1", "--environment", "gym/CartPole-v1"]
    assert main(evaluate) == 0


def test_play_writes_a_film(places, tmp_path, capsys):
    out = tmp_path / "film.gif"
    words = ["play", str(places / "run"), "--frames", "5", "--seed", "1", "--out", str(out)]
    assert main([*words, "--environment", GAME]) == 0
    assert out.read_bytes()[:6] == b"GIF89a"


def test_data_info_and_verify(places, capsys):
    assert main(["data", "info", str(places / "log")]) == 0
    assert "240" in capsys.readouterr().out
    assert main(["data", "info", str(places / "log"), "--first", "1e2", "--json"]) == 0
    assert '"steps": 100' in capsys.readouterr().out
    assert main(["data", "verify", str(places / "log")]) == 0
    assert "no damage found" in capsys.readouterr().out
    assert main(["data"]) == 0


def test_scores_prints_table_one_beside_the_paper_and_writes_it(places, tmp_path, capsys):
    mine, out = tmp_path / "mine.csv", tmp_path / "out"
    mine.write_text("game,random,dqn\nPong,-20,10\n")
    words = ["scores", str(places / "gap_csv"), "--incomplete", "leave-out", "--normaliser", str(mine)]
    assert main([*words, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "median normalised score / games > DQN, of 1 game" in lines
    assert "REM 116.7% / 1 116.7% / 1 103.7% / 35 123.8% / 49" in lines
    assert "left out of every number: Qbert (none of REM)" in lines
    figures, tables = (
        ["intervals.png", "iqm.png"],
        ["aggregates.csv", "pairs.csv", "per_game.csv", "table.csv"],
    )
    assert sorted(path.name for path in out.iterdir()) == sorted([*figures, *tables, "table.md"])
    assert "Qbert (none of REM)" in (out / "table.md").read_text()
    assert main(["scores", str(places / "scores_csv"), "--normaliser", "human-random"]) == 0
    assert "games > human" in " ".join(capsys.readouterr().out.split())  # a title is as wide as its table


def test_collect_records_and_says_where(tmp_path, capsys):
    out = str(tmp_path / "data")
    words = ["collect", GAME, "--out", out, "--steps", "64", "--seeds", "5", *small_words("dqn")]
    assert main(words) == 0
    assert f"recorded in {out}" in capsys.readouterr().out
    assert len(optimist.open(out)) == 64


def test_debug_shows_where_it_happened(capsys):
    assert main(["train", "--debug"]) == 2
    complaint = capsys.readouterr().err
    assert "Traceback" in complaint
    assert complaint.splitlines()[-1].startswith("optimist: name an agent")


@pytest.mark.parametrize("size", [0, 800, 2000, 50_000], ids="{} bytes".format)
def test_a_full_disk_is_exit_code_6_and_the_old_checkpoint_loads(places, tmp_path, size, capsys):
    """Whatever file the disk refuses first: the configuration, the metrics, or the checkpoint."""
    run, longer = tmp_path / "run", [word if word != "20" else "60" for word in TRAIN]
    shutil.copytree(places / "run", run)
    before = outcome(run)["checkpoint"]
    words = ["train", "dqn", str(places / "log"), "--out", str(run), *longer]
    with largest_file(size):
        assert main(words) == 6
    complaint = capsys.readouterr().err
    assert complaint.startswith("optimist: cannot write ") and complaint.count("\n") == 1
    if size == 50_000:
        assert "needed" in complaint and "are free" in complaint
    assert outcome(run)["checkpoint"] == before
    assert load_run(run).step == 20
    assert main(words) == 0
    assert load_run(run).step == 60


SHELL = {**os.environ, "JAX_PLATFORMS": "cpu"}


def test_a_mistake_in_the_shell_is_the_process_exit_code():
    found = subprocess.run(
        [sys.executable, "-m", "optimist", "trian"],
        capture_output=True,
        text=True,
        env=SHELL,
        timeout=PATIENCE,
    )
    assert found.returncode == 2
    assert found.stderr == 'optimist: there is no command "trian": did you mean "train"?\n'
    assert found.stdout == ""


def test_a_reader_that_leaves_is_no_error_to_show():
    with subprocess.Popen(
        [sys.executable, "-m", "optimist", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=SHELL,
    ) as child:
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 1


OFFLINE = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        raise SystemExit(f"{event} {arguments}")

sys.addaudithook(refuse)
from optimist.cli.main import main
for line in sys.argv[1:]:
    if code := main(line.split("|")):
        sys.exit(code)
"""


def test_it_works_without_home_terminal_locale_or_network_in_any_folder(places, tmp_path):
    folder = tmp_path / "Übung mit Leerzeichen 🎲"
    shutil.copytree(places / "log", folder / "Log 日本")
    for path in (folder / "Log 日本", *(folder / "Log 日本").iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    names = ("PATH", "PYTHONPATH", "JAX_PLATFORMS", "JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")
    kept = {name: SHELL[name] for name in names if name in SHELL}  # without the flags it rounds otherwise
    train = ["train", "dqn", folder / "Log 日本", "--out", folder / "Lauf", *TRAIN]
    evaluate = ["evaluate", folder / "Lauf", "--episodes", "1"]
    lines = ["|".join(map(str, line)) for line in (train, evaluate, ["data", "info", folder / "Log 日本"])]
    found = subprocess.run(
        [sys.executable, "-c", OFFLINE, *lines],
        capture_output=True,
        env={**kept, "LC_ALL": "C", "MPLCONFIGDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
    )
    assert found.returncode == 0, found.stderr.decode()
    assert (folder / "Lauf" / "evaluation.csv").exists()
    assert outcome(folder / "Lauf") == outcome(places / "run")


def test_an_interrupted_command_without_checkpoints_promises_none(tmp_path):
    pipe = tmp_path / "scores.csv"
    os.mkfifo(pipe)
    # A shell that starts the tests with `&` lets them and their children ignore SIGINT.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code += "; from optimist.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "scores", str(pipe)]
    running = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    with running as process, open(pipe, "w"):  # it opens when the command waits for the first line
        process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=PATIENCE)[1]
        finally:
            process.kill()
    assert (process.returncode, said) == (130, "optimist: stopped at once; the same command begins again\n")


def test_an_interrupted_command_with_checkpoints_promises_one(tmp_path, capsys):
    game = tmp_path / "interrupted.py"
    game.write_text("raise KeyboardInterrupt")
    assert main(["collect", f"{game}:Game/any", "--out", str(tmp_path / "log"), "--debug"]) == 130
    promise = "the same command continues from the last checkpoint\n"
    assert capsys.readouterr().err == f"optimist: stopped at once; {promise}"
