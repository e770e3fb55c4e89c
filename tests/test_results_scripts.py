"""The scripts of the results: games and seeds accumulate, archives stay small, commands end by the clock, and
a script that is called wrongly says how to call it."""

import csv
import importlib.util
import json
import runpy
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[1] / "docs" / "results"
FIRST, SECOND = 100, 200  # updates at the evaluations


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """docs/results as the scripts there see it."""
    monkeypatch.syspath_prepend(str(RESULTS))


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def evaluations(seed: int, scores: dict[int, float]) -> str:
    """Two episodes for each step, with this mean."""
    rows = [f"{step},{seed},{i},{score + i - 0.5},9\n" for step, score in scores.items() for i in (0, 1)]
    return "step,seed,episode,return,length\n" + "".join(rows)


def stretch(folder: Path, game: str, seed: int, **agents: dict[int, float]) -> Path:
    """What a stretch leaves of one game, with a player that has 1 and then 11 points."""
    for name, scores in agents.items():
        written(folder / game / name / "episodes.csv", evaluations(seed, scores))
    written(folder / game / "log" / "agent" / "episodes.csv", evaluations(seed, {FIRST: 1.0, SECOND: 11.0}))
    card = {"return_mean": 2.0, "best_policy_return": 6.0}
    card |= {"provenance": {"environment": f"atari/{game}", "seeds": [seed]}}
    written(folder / game / "log.json", json.dumps(card))
    written(folder / "progress.csv", f"10.0,{game}/rem,100\n")
    return folder


def gather(folder: Path, page: Path) -> None:
    page.mkdir(exist_ok=True)
    subprocess.run([sys.executable, RESULTS / "gathering.py", folder, page], check=True)


def scores(page: Path) -> list[str]:
    with (page / "scores.csv").open() as file:
        return [" ".join(row.values()) for row in csv.DictReader(file)]


def test_games_and_seeds_accumulate_and_a_run_replaces_itself(tmp_path):
    page, first = tmp_path / "page", tmp_path / "first"
    stretch(first, "Breakout", 0, rem={FIRST: 2.0})
    gather(stretch(first, "Qbert", 0, rem={FIRST: 4.0}), page)
    gather(stretch(tmp_path / "second", "Qbert", 1, rem={FIRST: 6.0}), page)
    old = ["atari/Qbert REM 0 100 4.0", "atari/Qbert REM 1 100 6.0"]
    assert scores(page) == ["atari/Breakout REM 0 100 2.0", *old]
    gather(stretch(tmp_path / "third", "Breakout", 0, rem={FIRST: 8.0, SECOND: 9.0}), page)
    assert scores(page) == [*old, "atari/Breakout REM 0 100 8.0", "atari/Breakout REM 0 200 9.0"]
    assert sorted(json.loads((page / "logs.json").read_text())["atari/Qbert"]) == ["0", "1"]


def test_rows_with_other_columns_are_not_mixed(tmp_path):
    written(tmp_path / "page" / "scores.csv", "agent,score\n")
    with pytest.raises(subprocess.CalledProcessError):
        gather(stretch(tmp_path / "stretch", "Qbert", 0, rem={FIRST: 6.0}), tmp_path / "page")
    assert (tmp_path / "page" / "scores.csv").read_text() == "agent,score\n"


def module_of(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(page: Path) -> dict[tuple[str, str], dict[str, str]]:
    """The rows of Figure 7's table by agent and reading."""
    module = module_of(RESULTS / "figure-7-atari" / "table.py")
    rows = [dict(zip(module.HEADS, row, strict=True)) for game in module.games(page) for row in game.rows()]
    return {(row["who"], row["reading"]): row for row in rows}


def test_agents_are_read_where_all_were_evaluated_and_only_other_logs_choose(tmp_path):
    page, longer = tmp_path / "page", {FIRST: 3.0, SECOND: 20.0}
    gather(stretch(tmp_path / "first", "Pong", 0, rem={FIRST: 5.0}, qr_dqn=longer), page)
    found = table(page)
    assert found["the player", "best"]["percent"] == "100"
    assert found["QR-DQN", "last"]["score"] == found["QR-DQN", "best"]["score"] == "3.00"
    assert ("QR-DQN", "cross-chosen best") not in found
    both = {FIRST: 5.0, SECOND: 0.0}
    gather(stretch(tmp_path / "again", "Pong", 0, rem=both, qr_dqn=longer), page)
    gather(stretch(tmp_path / "second", "Pong", 1, rem={FIRST: 1.0, SECOND: 9.0}, qr_dqn=longer), page)
    found = table(page)
    assert found["REM", "best"]["score"] == "4.50"  # at the second evaluation
    assert found["REM", "cross-chosen best"]["score"] == "0.50"  # each log by the evaluation of the other
    assert (found["REM", "last"]["logs"], found["REM", "last"]["at"]) == (2, SECOND)


def test_the_archive_has_the_first_rows_of_the_metrics_and_a_tenth_of_the_others(tmp_path):
    import work

    rows = [f'{{"step": {step}, "loss": 0.5}}\n' for step in range(250, 10_001, 250)]
    written(tmp_path / "run" / "metrics.jsonl", "".join(rows))
    written(tmp_path / "run" / "DONE", "")
    written(tmp_path / "run" / "frames.arrow", "large")
    work.pack(tmp_path)
    with tarfile.open(tmp_path / "found.tar.gz") as archive:
        assert archive.getnames() == ["run/DONE", "run/metrics.jsonl"]
        kept = archive.extractfile("run/metrics.jsonl").read().decode().splitlines()
    assert [json.loads(row)["step"] for row in kept] == [250, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000]


def test_a_command_can_be_stopped_although_its_shell_ignores_the_signal(tmp_path):
    import work

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell starts a command with `&`
    try:
        started = work.Work("help", ["--help"], tmp_path)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # which the child inherits
        work.stop([started])
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_tables_of_large_batches_follow_from_their_scores(tmp_path):
    page = RESULTS / "large-batches"
    for name in ("scores.csv", "rates.csv"):
        shutil.copy(page / name, tmp_path)
    subprocess.run([sys.executable, page / "table.py", "table", tmp_path], check=True)
    assert (tmp_path / "table.csv").read_bytes() == (page / "table.csv").read_bytes()
    again = subprocess.run([sys.executable, page / "times_again.py"], check=True, capture_output=True)
    assert again.stdout == (page / "draws.csv").read_bytes()


def evaluations_of(file: str, game: str) -> dict[int, dict[int, float]]:
    """By player and step."""
    found: dict[int, dict[int, float]] = {}
    with (RESULTS / file).open() as rows:
        for row in csv.DictReader(rows):
            if row["game"] == game:
                found.setdefault(int(row["seed"]), {})[int(row["step"])] = float(row["score"])
    return found


def test_the_first_tenths_of_long_logs_are_of_the_same_players():
    """Data quality has every evaluation of the short logs' players, the other studies each player's best."""
    decay = module_of(RESULTS / "ten-times-the-log" / "decay.py")
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
    decay = module_of(RESULTS / "ten-times-the-log" / "decay.py")
    breakout, games = "minatar_jax/breakout", decay.bounds("ten-times-the-log")
    whole = [agent for agent, data in decay.all_curves() if data == "whole"]
    without = {agent for agent in whole if breakout not in decay.first_tenths(agent)}
    assert without == {"C51", "DQN (Nature)"}
    for agent in whole:
        sides = [("last", decay.first_tenths(agent))]
        assert (decay.cells(sides, [breakout], decay.mean) == [""] * 3) == (agent in without)
        assert (decay.cells(sides, games, decay.iqm) == [""] * 3) == (agent in without)


TEXTS = {str(path.relative_to(RESULTS)): path.read_text("utf-8") for path in sorted(RESULTS.rglob("*.py"))}
CALLED = [name for name, text in TEXTS.items() if "    call(__doc__" in text]
PARSED = [name for name, text in TEXTS.items() if "ArgumentParser" in text]
WRONG = [
    *((name, ["--nothing"]) for name in CALLED + PARSED),
    *((name, []) for name in PARSED),
    *((name, []) for name in ("gathering.py", "redraw.py", "study_players.py", "study_scores.py")),
    *((f"{page}/table.py", []) for page in ("large-batches", "precision")),
    *((f"reward-scale/{name}.py", []) for name in ("limit", "scale")),
    *((name, []) for name in ("growing-the-log/rounds.py", "narrow-log/narrow.py", "selection/replay.py")),
    *((f"{page}/table.py", ["late"]) for page in ("large-batches", "precision")),
    ("bcq-divergence/divergence.py", ["gather"]),
    ("dataset-size/parts.py", ["one.png"]),
    ("gathering.py", ["one"]),
    ("growing-the-log/rounds.py", ["out", "three"]),
    ("ten-times-the-log/decay.py", ["one.png", "two.png"]),
]


def exit_code(name: str, words: list[str], monkeypatch) -> int | str | None:
    monkeypatch.setattr(sys, "argv", [name, *words])
    monkeypatch.syspath_prepend(str((RESULTS / name).parent))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(RESULTS / name), run_name="__main__")
    return ended.value.code


def test_every_script_reads_its_words():
    """Four without arguments took --help for nothing, and began their work."""
    scripts = [name for name, text in TEXTS.items() if '__name__ == "__main__"' in text]
    assert sorted(scripts) == sorted(CALLED + PARSED) and len(scripts) > 25


def test_a_folder_that_is_not_there_is_said_in_one_line(monkeypatch, capsys, tmp_path):
    assert exit_code("gathering.py", [str(tmp_path / "nowhere"), str(tmp_path)], monkeypatch) == 2
    assert "nowhere has no progress.csv: name the folder of the runs" in capsys.readouterr().err
    (tmp_path / "progress.csv").touch()
    assert exit_code("gathering.py", [str(tmp_path), str(tmp_path / "nowhere")], monkeypatch) == 2
    assert "nowhere is not a folder: name that of the page" in capsys.readouterr().err


def test_every_script_with_words_has_one_of_two_readers():
    own = [name for name, text in TEXTS.items() if "sys.argv" in text]
    assert own == ["command.py", "narrow-log/narrow.py"]  # which has the program of another process as text
    assert "gathering.py" in CALLED and "own_logs.py" in PARSED


@pytest.mark.parametrize(
    "name, words", WRONG, ids=lambda each: each if isinstance(each, str) else " ".join(each)
)
def test_a_script_that_is_called_wrongly_says_how_to_call_it(name, words, monkeypatch, capsys):
    assert exit_code(name, words, monkeypatch) == 2
    out, err = capsys.readouterr()
    assert out == "" and (Path(name).name in err)


@pytest.mark.parametrize("name", CALLED + PARSED)
def test_help_is_not_taken_for_a_file(name, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert exit_code(name, ["--help"], monkeypatch) == 0
    assert Path(name).name in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name, words", [("recompute.py", ["nothing"]), ("redraw.py", ["nothing", "again"])])
def test_who_names_no_page_is_told_the_pages(name, words, monkeypatch, capsys):
    assert exit_code(name, words, monkeypatch) == 2
    assert "of nothing: the pages are " in capsys.readouterr().err


def test_words_are_read_as_the_function_says():
    from command import arguments

    def way(page: str, out: Path, count: int = 1): ...

    assert arguments(way, ["a", "b", "3"]) == ["a", Path("b"), 3]
    assert arguments(way, ["a", "b"]) == ["a", Path("b")]
    assert arguments(way, ["a"]) is arguments(way, ["a", "b", "x"]) is arguments(way, ["a", "-b"]) is None
    assert arguments(lambda *pages: None, ["a", "b"]) == ["a", "b"]
