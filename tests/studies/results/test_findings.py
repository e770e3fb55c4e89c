"""Tables and figures of a study, from run folders that say what they hold."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from little import random_play
from optimist.data import Recorder, Spec
from optimist.errors import DataError, RunError
from optimist.studies.job import Job
from optimist.studies.report.study_report import write_findings
from optimist.studies.results.findings import find
from optimist.studies.results.logs import read_logs
from optimist.studies.results.runs import Evaluated, csv_text, evaluated, parts, score_file
from optimist.studies.scores.score_files import ScoreFile, read_scores
from optimist.studies.status import write_jobs
from optimist.training.storage.configuration import toml

GAMES = ("minatar/breakout", "minatar/freeway")
SPEC = Spec((2, 1, 1), "uint8", actions=2)


def job(name: str, environment: str, **more) -> Job:
    common = {"agent": "dqn", "preset": None, "recipe": "small", "seeds": (0, 1)}
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


def finish(each: Job, out) -> None:
    folder = each.run_folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(toml(each.expected(out)))
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
        elif each.agent == "random":
            episodes(folder, [(1, 0, n, value, 9) for n, value in enumerate((1, 3))])
        else:
            first, last = (4, 14) if each.label == "A" else (2, 6)
            values = [(100, first), (200, last)]
            episodes(folder, [(step, seed, 0, value, 9) for step, value in values for seed in (0, 1)])
        finish(each, tmp_path)
    write_jobs(tmp_path, "A little study", jobs())
    return tmp_path


def test_a_study_may_learn_from_the_logs_of_random_play(study):
    """Such a log has no evaluations; the score of random play is that of its own run."""
    random = [replace(each, agent="random") if each.collects else each for each in jobs()]
    for each in random:
        finish(each, study)
    write_jobs(study, "Logs of random play", random)
    by = find(study).by
    assert by.random_scores == dict.fromkeys(GAMES, 2.0)
    assert by.yardstick_scores == dict.fromkeys(GAMES, 10.0)


def test_the_studys_own_player_and_random_play_are_the_yardsticks(study):
    by = find(study).by
    assert by.yardstick_scores == dict.fromkeys(GAMES, 10.0)
    assert by.random_scores == dict.fromkeys(GAMES, 2.0)
    assert by.normalised(GAMES[0], 14) == 1.5


def test_the_yardstick_is_the_mean_over_players_and_not_over_their_episodes(tmp_path):
    """Two players: 20 points in each episode of 2 steps, and 5 in each of a single step."""
    log = job("logs/a", GAMES[0], seeds=(0, 1))
    run = job("runs/a", GAMES[0], data=log.name, needs=(log.name,), label="A", part="all")
    provenance = {"seeds": [0, 1], "collection": {"lanes": 1}}
    with Recorder(tmp_path / log.name, SPEC, lanes=2, provenance=provenance) as recorder:
        for row, step in enumerate(random_play(SPEC, rows=400, lanes=2)):
            ends = np.array([row % 2 == 1, True])
            recorder.add(0 * step[0], step[1], np.float32([10, 5]), ends, ends & False, 0 * step[5])
    for each in (log, run):
        finish(each, tmp_path)
    (found,) = read_logs([log, run], tmp_path).values()
    assert found.player == found.average["all"] == 12.5  # 10.0 by episodes: 200 of 20 and 400 of 5
    assert found.evaluation is None


def test_a_player_that_was_evaluated_is_measured_by_its_best_evaluation(study):
    """As the paper's 100%: at the best of the evaluations of the mean over players."""
    by_hand = {100: (3.0, 5.0), 200: (9.0, 13.0), 300: (12.0, 2.0)}
    for game in GAMES:
        rows = [
            (step, seed, 0, value, 9) for step, both in by_hand.items() for seed, value in enumerate(both)
        ]
        episodes(study / f"logs/{game}" / "agent", rows)
    found = find(study)
    assert found.by.yardstick_scores == dict.fromkeys(GAMES, 11.0)
    assert found.logs[GAMES[0]].player == 10.0 and found.logs[GAMES[0]].players == {"0": 12.0, "1": 13.0}
    assert "best evaluation" in found.by.provenance


def test_seeds_that_were_trained_in_runs_of_their_own_stand_in_one_table(study):
    one, other = (job(f"runs/x/{n}", GAMES[0], seeds=(n,), data="d", label="X", part="all") for n in (1, 2))
    runs = [Evaluated(each, {each.seeds[0]: {100: 4.0}}, 1, 9) for each in (one, other)]
    assert score_file(runs, "all").agents == {"X": {GAMES[0]: {1: {100: 4.0}, 2: {100: 4.0}}}}


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
    assert [job.name for job in jobs() if job.label and not job.done(study)] == [f"runs/{GAMES[1]}/B"]
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
    assert finding.left_out == {GAMES[0]: "its player and random play both score 10"}


def test_without_any_yardstick_the_remedy_is_a_normaliser(study):
    for game in GAMES:
        (study / f"random/{game}/DONE").unlink()
    with pytest.raises(
        DataError, match="no game is left; finish the runs, or define .* --normaliser FILE.csv"
    ):
        find(study)


def test_a_reading_before_the_first_evaluation_is_refused(study):
    write_jobs(study, "A little study", jobs(), read_at={"early": 50})
    with pytest.raises(DataError, match="early is before the first evaluation"):
        find(study)
