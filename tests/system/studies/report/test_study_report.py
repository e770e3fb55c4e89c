"""A study's page and tables say what plain loops find in its run folders."""

import base64
import csv
import gzip
import html
import json
import re
import shutil
import statistics
from dataclasses import replace

import pytest
from matplotlib.text import Text

import made_study
from made_study import (
    AGENTS,
    EPISODES,
    GAMES,
    PLAYER,
    RANDOM,
    SEEDS,
    STEPS,
    VERSIONS,
    empty_drawings,
    height,
    jobs,
    write_selections,
    write_study,
)
from optimist import plugins
from optimist.cli.main import main
from optimist.errors import DataError, RunError, UsageError
from optimist.studies.plan import folder_names
from optimist.studies.report import page, study_figures, study_tables
from optimist.studies.report.study_figures import chart_data, draw
from optimist.studies.report.study_report import write_findings
from optimist.studies.report.study_tables import warnings
from optimist.studies.results.findings import find
from optimist.studies.scores import intervals
from optimist.studies.scores.normalisation import Normaliser, normaliser
from optimist.studies.status import job_status, note_failure, write_jobs
from optimist.training.storage.configuration import toml
from optimist.training.storage.run_folder import Alarm, write_alarms

KINDS = ("best", "cross", "last", "mean_of_last", "area")


@pytest.fixture
def made(tmp_path):
    return write_study(tmp_path / "made")


@pytest.fixture
def study(made, monkeypatch):
    """Its figures are empty, and its intervals are of few draws: those of test_study_page are real."""
    monkeypatch.setattr(study_figures, "drawings", empty_drawings)
    monkeypatch.setattr(intervals, "REPETITIONS", 300)
    monkeypatch.setattr(intervals, "BAND_REPETITIONS", 50)
    return made


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The folder of a study whose report is written, and the page: for tests that only read."""
    out = write_study(tmp_path_factory.mktemp("written") / "made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_figures, "drawings", empty_drawings)
        patch.setattr(intervals, "REPETITIONS", 300)
        assert write_findings(out)[1] == []
    return out, (out / "report.html").read_text()


def table(text: str, name: str) -> list[dict[str, str]]:
    """The rows of a table of the page by their headings, read without a browser."""
    inner = re.search(rf'<table class="sortable" id="{name}">(.*?)</table>', text, re.DOTALL)[1]
    heads = re.findall(r"<button[^>]*>(.*?)</button>", inner)
    body = inner.partition("<tbody>")[2]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]
    return [dict(zip(map(html.unescape, heads), map(html.unescape, row), strict=True)) for row in rows]


def links(text: str) -> dict[str, bytes]:
    found = re.findall(r'<a download="([^"]*)" href="data:[^;]*;base64,([^"]*)"', text)
    return {name: base64.b64decode(content) for name, content in found}


def normalised(score: float) -> float:
    return (score - RANDOM) / (PLAYER - RANDOM)


def runs_scores(game: str, agent: str, kind: str) -> list[float]:
    """By loops: one normalised score for each seed; best is at the step where the mean over seeds is."""
    if kind == "cross":  # each seed where the sum over the others is largest
        return [
            normalised(
                height(game, agent, seed, max(STEPS, key=lambda step: others(game, agent, seed, step)))
            )
            for seed in SEEDS
        ]
    means = {step: sum(height(game, agent, seed, step) for seed in SEEDS) / len(SEEDS) for step in STEPS}
    steps = {
        "best": [max(means, key=means.get)],
        "last": [STEPS[-1]],
        "mean_of_last": list(STEPS[-3:]),
        "area": list(STEPS),
    }[kind]
    return [normalised(sum(height(game, agent, seed, step) for step in steps) / len(steps)) for seed in SEEDS]


def others(game: str, agent: str, seed: int, step: int) -> float:
    return sum(height(game, agent, other, step) for other in SEEDS if other != seed)


def trimmed_mean(values: list[float]) -> float:
    values, quarter = sorted(values), len(values) // 4
    kept = values[quarter : len(values) - quarter]
    return sum(kept) / len(kept)


def test_aggregates_are_those_of_plain_loops(shown):
    study, _ = shown
    rows = list(csv.DictReader((study / "results/all/aggregates.csv").read_text().splitlines()))
    assert [(row["agent"], row["score"]) for row in rows] == [(a, k) for a in AGENTS for k in KINDS]
    for row in rows:
        by_game = [runs_scores(game, row["agent"], row["score"]) for game in GAMES]
        every = [score for scores in by_game for score in scores]
        means = [sum(scores) / len(scores) for scores in by_game]
        expected = {
            "iqm": trimmed_mean(every),
            "median": statistics.median(means),
            "mean": sum(means) / len(means),
            "optimality_gap": sum(max(1 - score, 0) for score in every) / len(every),
        }
        assert {name: float(row[name]) for name in expected} == pytest.approx(expected)
        assert all(float(row[f"{name}_low"]) < float(row[f"{name}_high"]) for name in ("iqm", "mean"))


def test_the_median_of_best_is_that_of_table_one(shown):
    (finding,) = find(shown[0]).findings
    ours = {row.agent: row.median.estimate for row in finding.certainty if row.score == "best"}
    assert {row.agent: row.median_percent["best"] for row in finding.rows} == pytest.approx(
        {agent: 100 * value for agent, value in ours.items()}
    )


def test_improvement_is_over_dqn_nature_and_counts_pairs(study):
    (finding,) = find(study).findings
    found = {(row.agent, row.score): row.probability_of_improvement for row in finding.certainty}
    assert found["DQN (Nature)", "last"] is None
    wins = []
    for game in GAMES:
        x, y = runs_scores(game, "QR-DQN", "last"), runs_scores(game, "DQN (Nature)", "last")
        wins.append(sum((a > b) + (a == b) / 2 for a in x for b in y) / len(x) / len(y))
    assert found["QR-DQN", "last"].estimate == pytest.approx(sum(wins) / len(wins))


def test_without_dqn_nature_the_first_agent_is_compared_with():
    assert intervals.baseline(["C51", "REM"]) == "C51"
    assert intervals.baseline(["C51", "DQN (Nature)"]) == "DQN (Nature)"


def test_one_seed_has_no_interval(study):
    for job in jobs():
        if job.label:
            file = job.run_folder(study) / "episodes.csv"
            rows = file.read_text().splitlines()
            file.write_text("\n".join([rows[0], *(row for row in rows[1:] if row.split(",")[1] == "0")]))
    write_findings(study)
    text = (study / "report.html").read_text()
    assert {row["IQM"] for row in table(text, "aggregates")} <= {f"{n / 100:.2f}" for n in range(300)}
    row = next(csv.DictReader((study / "results/all/aggregates.csv").read_text().splitlines()))
    assert "iqm" in row and "iqm_low" not in row
    assert "one seed: the spread over seeds is unknown" in text


def test_the_page_shows_the_numbers_of_plain_loops(shown):
    _, text = shown
    for row in table(text, "aggregates"):
        kind = {
            "best of 4": "best",
            "cross-chosen best": "cross",
            "last": "last",
            "mean of last 3": "mean_of_last",
            "mean of all": "area",
        }[row["score"]]
        every = [score for game in GAMES for score in runs_scores(game, row["agent"], kind)]
        assert row["IQM"].startswith(f"{trimmed_mean(every):.2f} [")
    games = table(text, "per-game")
    assert len(games) == len(GAMES) * len(AGENTS)
    for row in games:
        last = sum(height(row["game"], row["agent"], seed, 400) for seed in SEEDS) / len(SEEDS)
        assert float(row["last"]) == pytest.approx(last, abs=0.051)
        gain = float(row["last, gain"].rstrip("%"))
        assert gain == pytest.approx(100 * (normalised(last) - 1), abs=0.051)


def test_what_evaluation_cost_is_counted(shown):
    rows = table(shown[1], "cost")
    looks = len(GAMES) * len(SEEDS) * len(STEPS)
    expected = [str(len(GAMES)), str(looks), str(looks * len(EPISODES)), str(looks * len(EPISODES) * 7)]
    assert [list(row.values()) for row in rows] == [[agent, *expected] for agent in AGENTS]


def test_the_files_travel_with_the_page(shown):
    study, text = shown
    found = links(text)
    assert set(found) == {"scores.csv", "per_game.csv", "aggregates.csv"}
    for name, content in found.items():
        assert content == (study / "results/all" / name).read_bytes()


def test_a_large_file_travels_compressed():
    text = "row\n" * page.LARGE
    link = page.csv_link("scores.csv", "", text)
    assert link.name == "scores.csv.gz"
    assert gzip.decompress(base64.b64decode(link.href.partition("base64,")[2])).decode() == text


def test_mixed_versions_are_a_warning_in_the_page_and_on_the_console(study, caplog):
    odd = f"runs/{GAMES[0]}/all/REM"
    (study / odd / "versions.json").write_text(json.dumps({**VERSIONS, "jax": "0.11.0", "dataset": "def"}))
    assert main(["study", "report", str(study)]) == 0
    said = f"the runs have different versions: jax 0.10.2 in 14 runs, 0.11.0 in 1 ({odd})"
    assert said in caplog.messages
    assert said in html.unescape((study / "report.html").read_text())


def test_a_run_that_diverged_is_named_before_any_number(study):
    run = f"runs/{GAMES[0]}/all/REM"
    write_alarms(study / run, {0: Alarm(104750, 90000, 99.0, 10.0), 3: Alarm(2000, 1000, None, 10.0)})
    assert write_findings(study)[1] == [
        f"diverged, with values beyond the returns of their logs: {run} (2 seeds, the first at step 2,000); "
        "their scores are counted"
    ]


@pytest.mark.parametrize(
    ("returns", "is_warned"),
    [
        ((PLAYER - 0.1, PLAYER - 0.1), True),  # agents score far beyond ten times this difference
        ((PLAYER - 7, PLAYER + 5), True),  # on average 1 below the player, but their spread is 6
        ((RANDOM, RANDOM), False),
        ((RANDOM - 1, RANDOM + 1), False),
    ],
)
def test_a_player_that_is_hardly_better_than_random_play_is_a_warning(study, returns, is_warned):
    """Normalised scores are divided by the difference."""
    random_play_scores(study, returns, GAMES[:1])
    said = f"the online DQN is hardly better than random play in {GAMES[0]} ("
    assert [line.startswith(said) for line in write_findings(study)[1]] == [True] * is_warned
    assert (said in html.unescape((study / "report.html").read_text())) == is_warned


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_page_of_a_study_can_be_written_elsewhere(study, tmp_path, capsys):
    """A study on a read-only disk has no place for it."""
    before, page = contents(study), tmp_path / "pages" / "mine.html"
    assert main(["study", "report", str(study), "--out", str(page)]) == 0
    assert f"wrote {page}\n" in capsys.readouterr().out
    assert contents(study) == before and list(page.parent.iterdir()) == [page]
    assert main(["study", "report", str(study)]) == 0
    written = page.read_text().replace(f" --out {page}", "")
    assert written == (study / "report.html").read_text()


def test_tables_of_readings_that_the_study_no_longer_has_are_removed(study):
    """A part that was renamed, or begun again, would keep numbers of other settings beside the new ones."""
    write_findings(study)
    results = study / "results"
    (results / "all" / "notes.png").write_text("mine")
    (results / "mine").mkdir()
    (results / "mine" / "table.csv").write_text("mine")
    before = {path.name for path in (results / "all").iterdir()}
    write_jobs(study, "The same runs", jobs(), read_at={"half": 200, "whole": 400})
    write_findings(study)
    assert {path.name for path in results.iterdir() if path.is_dir()} == {"all", "half", "whole", "mine"}
    assert [path.name for path in (results / "all").iterdir()] == ["notes.png"]
    assert {path.name for path in (results / "whole").iterdir()} == before - {"notes.png"}
    assert (results / "mine" / "table.csv").exists()


def test_a_study_that_cannot_be_written_says_where_the_page_can_go(study, capsys):
    (study / "results").write_text("a file in the way")
    assert main(["study", "report", str(study)]) == 6
    complaint = capsys.readouterr().err
    assert f"cannot make {study / 'results'}" in complaint and complaint.count("\n") == 1
    assert complaint.endswith("; to write the page alone elsewhere: --out page.html\n")


def test_half_finished_and_failed_runs_are_listed_and_not_averaged(study):
    stopped, failed = (f"runs/{GAMES[n]}/all/REM" for n in (0, 1))
    for name in (stopped, failed):
        (study / name / "DONE").unlink()
    (study / stopped / "metrics.jsonl").write_text('{"step": 250}\n')
    broken = next(job for job in jobs() if job.name == failed)
    note_failure(broken, study, "training diverged: try a smaller learning rate")
    _, warned = write_findings(study)
    assert "2 of 15 runs are not finished and not in the numbers, 1 of them failed" in warned
    text = (study / "report.html").read_text()
    rows = {row["run"]: row for row in table(text, "unfinished")}
    assert {name: row["state"] for name, row in rows.items()} == {stopped: "stopped", failed: "failed"}
    assert rows[stopped]["steps done"] == "250" and rows[stopped]["of"] == "400"
    assert rows[failed]["why"] == "training diverged: try a smaller learning rate"
    assert {row["game"] for row in table(text, "per-game")} == {GAMES[2]}
    note_failure(broken, study, "")
    assert job_status(broken, study).state == "waiting"


def test_a_study_whose_runs_all_have_other_settings_names_them(study, capsys):
    """It was said to have no finished runs yet, as if they were still to come."""
    write_jobs(study, "Edited", jobs(batch=64))
    assert main(["study", "report", str(study)]) == RunError.exit_code
    said = capsys.readouterr().err
    assert "9 of 15 runs in" in said and "training.batch: 32 saved, 64 requested" in said
    assert "--restart" in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("{out}", 4, "is not a study's folder: it has no study.json; name the --out of a study"),
        ("{made} --out {out}", 2, "is a folder: name a file, as in --out"),
        ("{made} --normaliser dqn-random", 2, 'dqn-random has no DQN score of "minatar/breakout"'),
        ("{made} --normaliser mine", 2, 'there is no normaliser "mine"'),
    ],
)
def test_a_mistake_is_one_line(study, tmp_path, capsys, words, code, said):
    asked = words.format(out=tmp_path, made=study).split()
    assert main(["study", "report", *asked]) == code
    complaint = capsys.readouterr().err
    assert said in complaint and complaint.count("\n") == 1


def test_a_normaliser_of_ones_own_is_found_by_the_names_of_games(study):
    names = [game.partition("/")[2] for game in GAMES]
    by = Normaliser(dict.fromkeys(names, 50.0), dict.fromkeys(names, 0.0), "human", "mine", "by hand")
    (finding,) = find(study, by).findings
    (row,) = [row for row in finding.certainty if (row.agent, row.score) == ("REM", "last")]
    means = [sum(height(game, "REM", seed, 400) for seed in SEEDS) / 3 / 50 for game in GAMES]
    assert row.mean.estimate == pytest.approx(sum(means) / len(means))
    with pytest.raises(UsageError, match="no DQN score"):
        find(study, normaliser("dqn-random"))


def test_the_command_on_a_page_has_the_normaliser(study, tmp_path):
    """Without it the command wrote other numbers than the page that shows it."""
    write_findings(study)
    shutil.copy(study / "results/normaliser.csv", tmp_path / "by.csv")
    words = ["study", "report", str(study), "--out", str(tmp_path / "page.html")]
    words += ["--normaliser", str(tmp_path / "by.csv")]
    assert main(words) == 0
    assert f"<pre>optimist {' '.join(words)}</pre>" in html.unescape((tmp_path / "page.html").read_text())


def test_the_page_can_be_made_again_when_the_logs_or_their_large_files_are_gone(study, tmp_path):
    write_findings(study)
    before = table((study / "report.html").read_text(), "aggregates")
    for path in (study / "logs").rglob("*.arrow"):
        path.unlink()
    assert main(["study", "report", str(study)]) == 0
    assert table((study / "report.html").read_text(), "aggregates") == before
    (study / "logs").rename(tmp_path / "elsewhere")
    own = ["--normaliser", str(study / "results/normaliser.csv")]
    for options in ([], own):  # what it remembers of them outlives the first time
        assert main(["study", "report", str(study), *options]) == 0
        assert table((study / "report.html").read_text(), "aggregates") == before


def test_a_damaged_log_of_which_nothing_is_remembered_is_an_error(study):
    next((study / "logs").rglob("steps-*.arrow")).unlink()
    with pytest.raises(DataError, match="steps-000000.arrow"):
        write_findings(study)


@pytest.mark.slow
def test_every_figure_that_a_study_may_name_is_drawn(made):
    assert all(list(study_figures.drawings(find(made), name)) for name in plugins.own("figures"))
    write_jobs(made, "All of them", jobs(), figures=tuple(plugins.own("figures")))
    written = {path.name for path in write_findings(made)[0]}
    bars = {f"bars-{folder}.png" for folder in folder_names(AGENTS).values()}
    assert written >= {"medians.png", "curves.png", "profiles.png", "parts.png", *bars}


def test_a_study_on_parts_of_its_data_shows_them_side_by_side(tmp_path):
    study = write_study(tmp_path / "parts", parts=("all", "half"))
    findings = find(study)
    usual = ("intervals", "iqm", "curves", "medians", "profiles")
    assert study_figures.named(findings) == (*usual, "parts")
    ((_, _, figure),) = study_figures.drawings(findings, "parts")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{agent}, {game.partition('/')[2]}" for agent in AGENTS for game in GAMES]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "all",
        "half",
        "1 is the online DQN",
    ]


def test_the_lines_of_the_curves_are_those_of_the_data(made):
    ((_, _, figure),) = study_figures.drawings(find(made), "curves")
    levels = {line.get_ydata()[0] for line in figure.axes[0].lines if len(set(line.get_xdata())) == 2}
    assert levels >= {PLAYER, RANDOM}
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [*AGENTS, "best policy in the data", "average behaviour", "random play"]


def test_agents_that_play_online_are_counted_in_steps_played(study, shown, tmp_path):
    """The first agent's own play is the log that random play is measured beside."""
    out, made = tmp_path / "online", []
    for job in jobs():
        first = f"runs/{job.environment}/all/{AGENTS[0]}"
        if job.label:
            made.append(replace(job, data=None, needs=()))
            (out / job.name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(study / f"logs/{job.environment}", out / job.name)
            shutil.copytree(study / job.name, out / job.name / "agent", dirs_exist_ok=True)
            (out / job.name / "agent" / "config.toml").write_text(toml(made[-1].expected({})))
        elif not job.plays:
            made.append(replace(job, data=first, needs=(first,)))
            shutil.copytree(study / job.name, out / job.name)
    write_jobs(out, "Online", made)
    write_findings(out)
    text = (out / "report.html").read_text()
    assert "steps played" in text and "gradient updates" not in text
    assert "The agents learned without the environment" not in text
    assert f"{AGENTS[0]} in training" in text and "paper, 5X" not in text  # its Table 1 is of offline agents
    # 1 is the best evaluation of the first agent, as the paper's is that of DQN; nothing is paired.
    best = next(row for row in table(text, "aggregates") if row["score"] == "best of 4")
    assert best["agent"] == AGENTS[0] and best["mean"].startswith("1.00 [")
    assert not any("paired" in head for head in best)
    _, offline = shown
    assert "The agents learned without the environment" in offline
    assert "steps played" not in offline and "paper, 5X" in offline


def test_runs_of_which_policies_were_chosen_in_different_ways_are_a_warning(study, caplog):
    """`optimist select` on some of the runs replaces what the study chose for them."""
    write_selections(write_selections(study), agents=AGENTS[:1], updates=1000)
    assert write_findings(study)[1] == [
        "the runs' policies were chosen offline in different ways: fqe, 1,000 updates; fqe, 50 updates"
    ]


def test_two_studies_stand_in_one_table(study, tmp_path):
    """The agents of the second are called "REM (B)"; all its scores are 3 higher."""
    other = write_study(tmp_path / "other", lift=3.0)
    for folder in (study, other):
        write_findings(folder)
    files = [str(folder / "results/all/scores.csv") for folder in (study, other)]
    by = ["--normaliser", str(study / "results/normaliser.csv")]
    assert main(["scores", *files, *by, "--out", str(tmp_path / "both")]) == 0
    rows = list(csv.DictReader((tmp_path / "both/aggregates.csv").read_text().splitlines()))
    last = {row["agent"]: float(row["mean"]) for row in rows if row["score"] == "last"}
    assert list(last) == [*AGENTS, *(f"{agent} (B)" for agent in AGENTS)]
    for agent in AGENTS:
        assert last[f"{agent} (B)"] - last[agent] == pytest.approx(3 / (PLAYER - RANDOM))


def test_the_headline_tells_the_offline_dqns_from_the_online_one(tmp_path, monkeypatch):
    agents = ("DQN (Nature)", "DQN (Adam)", "REM")
    monkeypatch.setattr("made_study.AGENTS", agents)
    study = write_study(tmp_path / "made", agents=agents, logs="own")
    text = study_tables.headline(find(study))
    assert "REM has the highest interquartile mean of 3 agents: 0.84" in text
    assert "DQN (Nature) has 0.49" in text and "DQN (Adam) has 0.67" in text
    assert "1 is the online DQN and 0 random play; 3 games, 3 seeds." in text


def test_the_headline_names_no_winner_where_one_log_or_the_intervals_do_not_show_one(tmp_path, monkeypatch):
    one_log = study_tables.headline(find(write_study(tmp_path / "one", games=GAMES[:1])))
    assert (
        "at the last evaluation the interquartile means of 3 agents are 0.40 to 0.76, from one log, and"
        in one_log
    )
    monkeypatch.setattr(made_study, "height", lambda game, agent, *more: height(game, "REM", *more))
    overlapping = study_tables.headline(find(write_study(tmp_path / "close", logs="own")))
    assert "of 3 agents are 0.84 to 0.84, and their intervals overlap; 1 is" in overlapping
    for headline in (one_log, overlapping):
        assert headline.startswith("No agent is shown to be the best: ")


def random_play_scores(study, returns, games) -> None:
    for job in jobs():
        if job.agent == "random" and job.environment in games:
            rows = "".join(f"1,0,{number},{value},7\n" for number, value in enumerate(returns))
            (job.run_folder(study) / "episodes.csv").write_text(f"step,seed,episode,return,length\n{rows}")


@pytest.mark.parametrize(
    ("games", "said"),
    [
        (GAMES, "1 is random play and 0 the online DQN"),
        (GAMES[:1], "1 is the better of the online DQN and random play and 0 the worse"),
    ],
)
def test_headline_axes_and_warning_agree_where_the_player_is_worse_than_random_play(made, games, said):
    random_play_scores(made, [PLAYER + 1], games)
    findings = find(made)
    assert said in study_tables.headline(findings)
    one = said.removeprefix("1 is ").partition(" and 0 ")[0]
    drawn = {
        name: next(study_figures.drawings(findings, name))[2] for name in ("intervals", "iqm", "medians")
    }
    words = {
        name: " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(Text))
        for name, figure in drawn.items()
    }
    assert (
        f"1 is {one}" in words["intervals"] and f"1 is {one}, 0 " in words["iqm"] and one in words["medians"]
    )
    levels = json.loads(chart_data(findings))["panels"][0]["levels"]
    assert levels == {one: 1, said.partition(" and 0 ")[2]: 0}
    (warned,) = [line for line in warnings(findings) if "worse than random play" in line]
    assert warned == (
        f"the online DQN is worse than random play in {', '.join(games)}: there 1 is random play, and 0 is "
        "the player"
    )


def test_one_evaluation_is_no_curve(tmp_path, monkeypatch):
    monkeypatch.setattr(made_study, "STEPS", (400,))
    findings = find(write_study(tmp_path / "made"))
    _, left_out = draw(findings, are_files=False)
    assert [
        line for line in left_out if "there is one evaluation, and its scores are in the tables" in line
    ] == [
        f'the figure "{name}" is left out: there is one evaluation, and its scores are in the tables'
        for name in ("iqm", "curves", "medians")
    ]
    assert chart_data(findings) == ""


def test_a_figure_that_was_asked_for_and_left_out_is_said(tmp_path):
    study = write_study(tmp_path / "made", games=GAMES[:1], said={"figures": ("bars", "medians")})
    line = 'the figure "bars" is left out: it compares games, and there is only one'
    assert write_findings(study)[1] == [line]
    assert line in html.unescape((study / "report.html").read_text())


def test_the_page_shows_each_player(study):
    """The spread of the players is a part of every result: each seed learned from one of them."""
    for game in GAMES:
        lines = ["step,seed,episode,return,length", "100,0,0,30,9", "100,1,0,31,9"]
        (study / "logs" / game / "agent" / "episodes.csv").write_text("\n".join(lines) + "\n")
    write_findings(study)
    rows = table((study / "report.html").read_text(), "players")
    assert [tuple(row.values()) for row in rows if row["game"] == GAMES[0]] == [
        (GAMES[0], "0", "20", "30"),
        (GAMES[0], "1", "", "31"),
    ]
