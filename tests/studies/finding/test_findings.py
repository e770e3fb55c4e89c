"""Tables and figures of a study, from run folders that say what they hold."""

import csv

import numpy as np
import pytest

from little import random_play
from optimist.data import Recorder, Spec
from optimist.errors import DataError, RunError
from optimist.studies.finding.findings import find
from optimist.studies.finding.results import csv_text, evaluated, finished, parts, score_file
from optimist.studies.reporting.study_report import write_findings
from optimist.studies.running.job import Job
from optimist.studies.running.status import write_jobs
from optimist.studies.scoring.score_files import ScoreFile, read_scores

GAMES = ("minatar/breakout", "minatar/freeway")
SPEC = Spec((2, 1, 1), "uint8", actions=2)


def job(name: str, environment: str, **more) -> Job:
    common = {"agent": "dqn", "preset": None, "scale": "small", "seeds": (0, 1)}
    return Job(**{"name": name, "environment": environment, **common, **more})


def jobs() -> list[Job]:
    found = []
    for game in GAMES:
        log = f"logs/{game}"
        found += [
            job(log, game, seeds=(0,)),
            job(f"random/{game}", game, agent="random", data=log, needs=(log,), seeds=(0,)),
            *(
                job(f"runs/{game}/{label}", game, data=log, needs=(log,), label=label, part="all")
                for label in ("A", "B")
            ),
        ]
    return found


def episodes(folder, rows) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["step,seed,episode,return,length", *(",".join(map(str, row)) for row in rows)]
    (folder / "episodes.csv").write_text("\n".join(lines) + "\n")
    (folder / "DONE").touch()


@pytest.fixture
def study(tmp_path):
    """Two games; the players end at 10, random play has 2; A scores 4 then 14, B 2 then 6, in both seeds."""
    for each in jobs():
        folder = each.run_folder(tmp_path)
        if each.plays:
            with Recorder(tmp_path / each.name, SPEC, lanes=1) as recorder:
                for step in random_play(SPEC, rows=20, lanes=1):
                    ends = np.ones(1, bool)
                    recorder.add(step[0], step[1], np.full(1, 10, np.float32), ends, ~ends, step[5])
            folder.mkdir(parents=True)
            (folder / "DONE").touch()
        elif each.agent == "random":
            episodes(folder, [(1, 0, n, value, 9) for n, value in enumerate((1, 3))])
        else:
            first, last = (4, 14) if each.label == "A" else (2, 6)
            values = [(100, first), (200, last)]
            episodes(folder, [(step, seed, 0, value, 9) for step, value in values for seed in (0, 1)])
    write_jobs(tmp_path, "A little study", jobs())
    return tmp_path


def test_the_studys_own_player_and_random_play_are_the_yardsticks(study):
    by = find(study).by
    assert by.yardstick_scores == dict.fromkeys(GAMES, 10.0)
    assert by.random_scores == dict.fromkeys(GAMES, 2.0)
    assert by.normalised(GAMES[0], 14) == 1.5


def test_tables_and_figures_are_written_for_every_reading(study):
    write_jobs(study, "A little study", jobs(), read_at={"1X": 100, "2X": 200})
    written, _ = write_findings(study)
    assert all(path.stat().st_size for path in written)
    found = {}
    for name in ("1x", "2x"):
        rows = csv.DictReader((study / "results" / name / "table.csv").read_text().splitlines())
        found[name] = {row["agent"]: (row["last_median_percent"], row["last_games_better"]) for row in rows}
    as_numbers = {
        name: {agent: (float(median), int(better)) for agent, (median, better) in rows.items()}
        for name, rows in found.items()
    }
    assert as_numbers == {"1x": {"A": (25.0, 0), "B": (0.0, 0)}, "2x": {"A": (150.0, 2), "B": (50.0, 0)}}
    assert {path.name for path in written} >= {"medians.png", "curves.png", "table.md", "per_game.csv"}


def test_scores_come_back_from_the_csv(study):
    named = score_file(evaluated(jobs(), study), "all").agents
    file = ScoreFile({f'"{agent}", 4 networks': games for agent, games in named.items()}, "step")
    (study / "again.csv").write_text(csv_text(file))
    assert read_scores(study / "again.csv") == file


def test_an_unfinished_run_is_named_and_its_game_left_out(study):
    (study / f"runs/{GAMES[1]}/B/DONE").unlink()
    assert finished(jobs(), study)[1] == [f"runs/{GAMES[1]}/B"]
    write_findings(study)
    text = (study / "results/all/table.md").read_text()
    assert f"{GAMES[1]} is left out: none of B" in text and "of 1 game\n" in text


def test_a_study_without_results_says_so(study, tmp_path):
    assert parts(jobs()) == ["all"]
    with pytest.raises(RunError, match="no finished runs yet: see optimist study status"):
        evaluated(jobs(), tmp_path / "elsewhere")


def test_a_game_without_its_random_play_is_left_out_and_named(study):
    (study / f"random/{GAMES[0]}/DONE").unlink()
    (finding,) = find(study).found
    assert finding.left_out == {GAMES[0]: "random play is not finished"}
    assert finding.file.games == [GAMES[1]]


def test_a_game_whose_player_is_no_better_than_random_play_is_left_out(study):
    episodes(study / f"random/{GAMES[0]}", [(1, 0, 0, 10, 9)])
    (finding,) = find(study).found
    assert finding.left_out == {GAMES[0]: "its player ends at 10, as random play does"}


def test_without_any_yardstick_the_remedy_is_a_normaliser(study):
    for game in GAMES:
        (study / f"random/{game}/DONE").unlink()
    with pytest.raises(DataError, match="no game is left; finish the runs, or say .* --normaliser FILE.csv"):
        find(study)


def test_a_reading_before_the_first_evaluation_is_refused(study):
    write_jobs(study, "A little study", jobs(), read_at={"early": 50})
    with pytest.raises(DataError, match="early is before the first evaluation"):
        find(study)
