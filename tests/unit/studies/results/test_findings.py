"""Tables and figures of a study, from run folders that say what they hold."""

import csv
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from little import random_play
from optimist.data import Recorder, Spec
from optimist.data.disk import manifest
from optimist.errors import DataError, RunError
from optimist.studies.job import Job
from optimist.studies.report.study_report import write_findings
from optimist.studies.report.study_tables import facts
from optimist.studies.results.findings import Evaluated, csv_text, evaluated, find, parts, score_file
from optimist.studies.results.logs import read_logs
from optimist.studies.scores.curves import ScoreFile, read_scores
from optimist.studies.status import standings, write_jobs
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
                job(
                    f"runs/{game}/{label}",
                    game,
                    data=log,
                    needs=(log,),
                    label=label,
                    part="all",
                    settings={"steps": 200, "evaluate_every": 100},
                )
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
    (folder / "config.toml").write_text(toml({"seeds": list(each.seeds), **each.expected({})}))
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


@pytest.mark.parametrize(
    ("provenance", "named"),
    [
        ({}, "the player of the log"),
        ({"format": "npz", "agent": {"name": "dqn"}}, "the player of the log"),
        ({"collection": {}, "agent": {"name": "my_package:Keen"}}, "the logged KEEN"),
        ({"collection": {}, "agent": {"name": "dqn"}}, "DQN"),
        ({"format": "dqn-replay"}, "DQN"),
    ],
)
def test_who_played_existing_logs_follows_from_the_logs(study, provenance, named):
    """The player of any log was called DQN, and stood beside the paper's numbers."""
    made = [replace(each, needs=(), data=str(study / str(each.data))) for each in jobs() if not each.plays]
    for each in made:
        finish(each, study)
    for game in GAMES:
        log = study / "logs" / game
        replace(manifest.read(log), provenance=provenance).write(log)
    write_jobs(study, "Existing logs", made)
    found = find(study)
    assert found.by.yardstick == named and found.by.yardstick_scores == dict.fromkeys(GAMES, 10.0)


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
    assert found.exploring == {"0": 20.0, "1": 5.0}
    assert found.evaluation is None


def players(folder, returns: list[tuple[float, ...]], steps=(100,)) -> None:
    """A log of as many players as each row has returns; the episodes of seed s have one step each. Every
    player was evaluated at `steps`, always with 10 times its seed."""
    count = len(returns[0])
    provenance = {"seeds": list(range(count)), "collection": {"lanes": 1}}
    with Recorder(folder, SPEC, lanes=count, provenance=provenance) as recorder:
        for row, step in zip(returns, random_play(SPEC, rows=len(returns), lanes=count), strict=True):
            ends = np.ones(count, bool)
            recorder.add(0 * step[0], step[1], np.float32(row), ends, ~ends, 0 * step[5])
    rows = [(step, seed, 0, 10 * seed, 9) for step in steps for seed in range(count)]
    episodes(folder / "agent", rows)


def learned(tmp_path, view: dict, **more) -> Job:
    """A finished run on logs/a, on this part of it."""
    log = job("logs/a", GAMES[0], seeds=(0, 1, 2))
    run = job("runs/a", GAMES[0], data=log.name, needs=(log.name,), label="A", part="some", view=view, **more)
    finish(run, tmp_path)
    return run


def test_of_one_kept_player_only_its_own_play_counts(tmp_path):
    """With one kept player its part, and the score that is 100%, were those of all players."""
    players(tmp_path / "logs/a", [(1, 8, 2), (1, 6, 2), (1, 6, 2), (1, 6, 2)])
    run = learned(tmp_path, {"first": 0.5}, seeds=(0,), kept=1, settings={"data_per_seed": "own"})
    (found,) = read_logs([run], tmp_path).values()
    assert (found.player, found.average["some"]) == (6.0, 7.0)
    assert (found.evaluation, found.players) == (10.0, {"1": 10.0})  # 20 at best, and 10 the mean of all
    assert found.exploring == {"1": 6.0}


def test_evaluations_of_players_that_are_not_kept_do_not_count(tmp_path):
    players(tmp_path / "logs/a", [(9, 8, 2)] * 4)
    run = learned(tmp_path, {}, seeds=(0, 1), kept=2, settings={"data_per_seed": "own"})
    (found,) = read_logs([run], tmp_path).values()
    assert (found.player, found.evaluation) == (8.5, 5.0)  # the mean of all evaluations is 10 too


def test_a_part_of_all_logs_together_is_measured_as_it_is_learned_from(tmp_path):
    """The best half of all episodes are those of two players, not the best half of each."""
    players(tmp_path / "logs/a", [(1, 8, 4), (2, 6, 4), (1, 8, 4), (2, 6, 4)])
    run = learned(tmp_path, {"best": 0.5}, seeds=(0, 1, 2))
    (found,) = read_logs([run], tmp_path).values()
    assert found.average["some"] == (7 + 4) / 2
    run = learned(tmp_path / "own", {"best": 0.5}, settings={"data_per_seed": "own"}, seeds=(0, 1, 2))
    players(tmp_path / "own" / "logs/a", [(1, 8, 4), (2, 6, 4), (1, 8, 4), (2, 6, 4)])
    (found,) = read_logs([run], tmp_path / "own").values()
    assert found.average["some"] == (2 + 8 + 4) / 3


def test_players_of_the_same_seed_in_several_logs_are_all_counted(tmp_path):
    """Only the last of them was counted."""
    runs = []
    for number, level in ((1, 4.0), (2, 10.0)):
        data = tmp_path / f"mine/{number}"
        players(data, [(level,)] * 4)
        episodes(data / "agent", [(100, 0, 0, level, 9)])
        runs += [job(f"runs/a/{number}", GAMES[0], data=str(data), label="A", part="all", seeds=(number,))]
        finish(runs[-1], tmp_path)
    (found,) = read_logs(runs, tmp_path).values()
    assert (found.evaluation, found.players) == (7.0, {"0": 4.0, "1": 10.0})
    (tmp_path / "mine/1/agent/episodes.csv").unlink()
    (found,) = read_logs(runs, tmp_path).values()
    assert (found.player, found.evaluation) == (7.0, None)


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


def test_an_evaluation_at_the_former_end_of_a_longer_run_does_not_count(study):
    """A game was added to a study that was made longer, and left out because it lacked that evaluation."""
    rows = [(step, seed, 0, 9.0, 9) for step in (100, 150, 200) for seed in (0, 1)]
    episodes(study / f"runs/{GAMES[0]}/A", rows)
    (finding,) = find(study).findings
    assert finding.left_out == {}
    steps = {step for games in finding.file.agents.values() for by in games.values() for step in by[0]}
    assert steps == {100, 200}


def test_the_policy_of_a_former_end_is_not_the_chosen_one(study):
    ranked = [{"step": step, "seed": 0} for step in (150, 200, 100)]
    run = Evaluated(jobs()[2], {0: {100: 4.0, 200: 6.0}}, 2, 18, {"candidates": ranked})
    assert score_file([run], "all").chosen_of("A", GAMES[0]) == {0: 200}


def run_by_run(study) -> list[Job]:
    """The jobs of the study with a run for each seed of A and B, all finished."""
    others = [each for each in jobs() if not each.label]
    runs = [
        replace(each, name=f"{each.name}/{seed}", seeds=(seed,))
        for each in jobs()
        if each.label
        for seed in (1, 2)
    ]
    for each in runs:
        episodes(each.run_folder(study), [(100, each.seeds[0], 0, 4.0, 9)])
        finish(each, study)
    write_jobs(study, "Run by run", [*others, *runs])
    return runs


def test_games_in_which_every_agent_lacks_the_same_run_are_left_out(study):
    """They were averaged over the runs that were there, and their 100% was that of their logs."""
    run_by_run(study)
    assert facts(find(study))["seeds"] == "2"  # it was 1, that of each run
    (finding,) = find(study).findings
    assert finding.left_out == {} and [*finding.file.agents["A"][GAMES[0]]] == [1, 2]
    for game, label in product(GAMES, "AB"):
        (study / f"runs/{game}/{label}/2/DONE").unlink()
    with pytest.raises(DataError, match="2 of 2 games are incomplete: .*breakout .A lacks seed 2.*no game"):
        find(study)


def test_tables_and_figures_are_written_for_every_reading(study):
    write_jobs(study, "A little study", jobs(), read_at={"1X": 100, "2X": 200})
    written, _ = write_findings(study)
    assert all(path.stat().st_size for path in written)
    found = {}
    for name in ("1x", "2x"):
        rows = csv.DictReader((study / "results" / name / "table.csv").read_text().splitlines())
        found[name] = {row["agent"]: (row["median_percent_last"], row["games_better_last"]) for row in rows}
    as_numbers = {
        name: {agent: (float(median), int(better)) for agent, (median, better) in rows.items()}
        for name, rows in found.items()
    }
    assert as_numbers == {"1x": {"A": (25.0, 0), "B": (0.0, 0)}, "2x": {"A": (150.0, 2), "B": (50.0, 0)}}
    assert {path.name for path in written} >= {"medians.png", "curves.png", "table.md", "per_game.csv"}


def test_scores_come_back_from_the_csv(study):
    named = score_file(evaluated(jobs(), study, standings(jobs(), study)), "all").agents
    file = ScoreFile({f'"{agent}", 4 networks': games for agent, games in named.items()}, "step")
    (study / "again.csv").write_text(csv_text(file))
    assert read_scores(study / "again.csv") == file


def test_an_unfinished_run_is_named_and_its_game_left_out(study):
    (study / f"runs/{GAMES[1]}/B/DONE").unlink()
    assert [job.name for job in jobs() if job.label and not job.done(study)] == [f"runs/{GAMES[1]}/B"]
    write_findings(study)
    text = (study / "results/all/table.md").read_text()
    assert f"left out of every number: {GAMES[1]} (none of B)" in text and "of 1 game\n" in text


def test_a_study_without_results_says_so(study, tmp_path):
    assert parts(jobs()) == ["all"]
    with pytest.raises(RunError, match="no finished runs yet: see optimist study status"):
        evaluated(jobs(), tmp_path / "elsewhere", standings(jobs(), tmp_path / "elsewhere"))


def test_a_game_that_cannot_be_normalised_is_left_out_and_named(study):
    episodes(study / f"random/{GAMES[0]}", [(1, 0, 0, 10, 9)])
    (finding,) = find(study).findings
    assert finding.left_out == {GAMES[0]: "its player and random play both score 10"}
    (study / f"random/{GAMES[0]}/DONE").unlink()
    (finding,) = find(study).findings
    assert finding.left_out == {GAMES[0]: "random play is not finished"}
    assert finding.file.games == [GAMES[1]]


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
