"""A study's file becomes the right runs, and every mistake in one is answered before anything runs."""

import copy
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optimist.errors import DataError, UsageError
from optimist.studies import study_file
from optimist.studies.job import Job
from optimist.studies.perform import check_logs
from optimist.studies.plan import folder_names
from optimist.training.settings import Training, with_values

TABLE = {
    "title": "A little study",
    "agents": {
        "REM": {"agent": "rem"},
        "DQN (Adam)": {"agent": "dqn", "preset": "adam", "options": {"optimizer.learning_rate": 0.001}},
    },
    "recipe": "small",
    "scales": {
        "tiny": {
            "environments": ["minatar/breakout", "gym/CartPole-v1"],
            "seeds": 3,
            "collect": {"agent": "dqn", "settings": {"steps": 500}},
            "views": {"all": {}, "10%": {"fraction": 0.1}},
            "training": {"steps": 200, "evaluate_every": 100},
        }
    },
}


def table(**changes) -> dict:
    """The file with these keys in its scale; of collect, data and play it has the one that is given."""
    changed = copy.deepcopy(TABLE)
    scale = changed["scales"]["tiny"]
    scale.update(changes)
    if {"data", "play"} & changes.keys() and "collect" not in changes:
        del scale["collect"]
    return changed


def read(**changes):
    return study_file.read("mine", table(**changes), "tiny")


def jobs_of(**changes) -> list[Job]:
    return read(**changes).jobs()


def test_a_grid_is_every_environment_view_and_agent_after_its_collection():
    study = read()
    jobs = {job.name: job for job in study.jobs()}
    assert list(jobs) == [
        "logs/minatar-breakout",
        "logs/gym-cartpole-v1",
        "random/minatar-breakout",
        "random/gym-cartpole-v1",
        *(
            f"runs/{game}/{view}/{agent}"
            for game in ("minatar-breakout", "gym-cartpole-v1")
            for view in ("all", "10")
            for agent in ("rem", "dqn-adam")
        ),
    ]
    log, random = jobs["logs/minatar-breakout"], jobs["random/minatar-breakout"]
    assert (random.agent, random.needs, random.label) == ("random", (log.name,), "")
    assert log.plays and log.seeds == (0, 1, 2) and log.steps() == 500
    run = jobs["runs/minatar-breakout/10/dqn-adam"]
    assert (run.data, run.needs, run.view) == (log.name, (log.name,), {"fraction": 0.1})
    assert run.seeds == (0, 1, 2) and run.steps() == 200 and run.settings["data_per_seed"] == "own"
    assert run.built_agent().optimizer.learning_rate == 0.001


def test_logs_that_exist_need_no_collection_and_are_found_from_any_folder(tmp_path, monkeypatch):
    """A report that was first made in another folder than the run said that the logs are missing."""
    (here := tmp_path / "{here}").mkdir()
    monkeypatch.chdir(here)
    jobs = jobs_of(data="logs/{game}")
    assert all(not job.plays and job.needs == () for job in jobs)
    assert {job.data for job in jobs} == {str(here / "logs" / name) for name in ("breakout", "CartPole-v1")}
    monkeypatch.chdir(tmp_path)
    assert jobs[-1].data_folder(tmp_path / "study") == here / "logs" / "CartPole-v1"
    assert jobs_of(data="s3://bucket/logs/{game}")[-1].data == "s3://bucket/logs/CartPole-v1"
    monkeypatch.setenv("HOME", str(tmp_path))
    folders = {job.data_folder(tmp_path / "study") for job in jobs_of(data="~/logs/{game}")}
    assert folders == {tmp_path / "logs" / "breakout", tmp_path / "logs" / "CartPole-v1"}


def test_a_normaliser_is_found_from_any_folder(tmp_path, monkeypatch):
    """It was a path in the working directory of the run, and a report written elsewhere failed."""
    (tmp_path / "mine.csv").write_text("game,random,dqn\nbreakout,0,1\n")
    monkeypatch.chdir(tmp_path)
    assert read(normaliser="mine.csv").normaliser == str(tmp_path / "mine.csv")
    assert read(normaliser="human-random").normaliser == "human-random"


def test_logs_that_are_not_there_are_told_of_before_any_run(tmp_path):
    jobs = jobs_of(data=str(tmp_path / "{game}"))
    (tmp_path / "breakout").mkdir()
    with pytest.raises(DataError, match="CartPole-v1, the log of gym/CartPole-v1, does not exist"):
        check_logs(jobs, tmp_path)
    (tmp_path / "CartPole-v1").mkdir()
    check_logs(jobs, tmp_path)
    check_logs(jobs_of(), tmp_path)  # those that will be collected


def test_agents_that_play_are_measured_by_the_first_of_them():
    every = jobs_of(play={"steps": 400, "evaluate_every": 100}, views={"all": {}})
    jobs = {job.name: job for job in every}
    rem, random = jobs["runs/gym-cartpole-v1/all/rem"], jobs["random/gym-cartpole-v1"]
    assert len(jobs) == 2 * (1 + 2)
    assert rem.plays and rem.seeds == (0, 1, 2) and (rem.label, rem.part, rem.steps()) == ("REM", "all", 400)
    assert random.data == rem.name and random.needs == (rem.name,)


def test_the_best_players_are_kept():
    run = jobs_of(collect={"agent": "dqn", "seeds": 4, "kept": 2})[-1]
    assert (run.kept, run.seeds, run.settings["data_per_seed"]) == (2, (0, 1), "own")


def test_a_job_travels_as_text():
    for job in jobs_of():
        assert Job.from_json(job.as_json()) == job


OURS = (  # studies that the paper has not
    "bounded-targets",
    "epsilon-and-heads",
    "exploration",
    "first-frames",
    "selection",
    "ten-times-the-log",
)


@pytest.mark.parametrize("name", study_file.catalogue())
@pytest.mark.parametrize("size", ["paper", "mini", "tiny"])
def test_the_catalogue_is_sound(name, size):
    if (name in OURS) and size == "paper":
        with pytest.raises(UsageError, match='has no scale "paper"'):
            study_file.load(name, size)
    else:
        assert study_file.load(name, size).jobs()


def test_several_players_are_as_many_as_seeds_and_one_log_may_serve_all():
    more = jobs_of(collect={"seeds": 4}, training={"data_per_seed": "own"})
    assert more[-1].seeds == (0, 1, 2)
    for collect, training in (({"seeds": 1}, {}), ({"seeds": 2}, {"data_per_seed": "whole"})):
        run = jobs_of(collect=collect, training=training)[-1]
        assert run.record().data_per_seed == "whole"


def test_imported_runs_of_one_game_form_one_study():
    """The public logs lie in dqn/Breakout/1 to 5: each seed learns from a run of its own."""
    jobs = [job for job in jobs_of(data="dqn/{game}/{run}", views={"all": {}}) if job.label == "REM"]
    found = [(job.name, job.seeds, job.data) for job in jobs if job.environment == "minatar/breakout"]
    assert found == [
        (f"runs/minatar-breakout/all/rem/{run}", (run,), str(Path(f"dqn/breakout/{run}").absolute()))
        for run in (1, 2, 3)
    ]


def test_an_agent_may_learn_from_a_share_of_the_part():
    agents = {"BC": {"agent": "behaviour_cloning", "view": {"best": 0.1}}}
    run = jobs_of(beside=agents)[-1]
    assert (run.label, run.part, run.view, run.share) == ("BC", "10%", {"fraction": 0.1}, {"best": 0.1})


@settings(deadline=None)
@given(st.lists(st.text(max_size=100), unique=True, max_size=6))
@example(["REM (a)", "REM [a]"])
@example(["10%", "10"])
@example(["DQN", "dqn"])
@example(["探索", "利用", "..", ".", "", "-"])
@example(["x" * 300, "x" * 299])
def test_two_labels_never_share_a_folder(labels):
    names = list(folder_names(labels).values())
    assert len({name.lower() for name in names}) == len(labels)
    for name in names:
        assert name and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-") and len(name) < 120
        assert name.strip(".") and not name.startswith(".")


def test_a_label_alone_keeps_its_legible_folder():
    assert folder_names(["REM (a)", "10%"]) == {"REM (a)": "rem-a", "10%": "10"}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"enviroments": []}, 'there is no key "enviroments": did you mean "environments"?'),
        ({"environments": ["minatar/brakeout"]}, 'did you mean "breakout"?'),
        ({"environments": []}, "the key environments is missing or empty"),
        ({"environments": ["minitar"]}, '"minitar" is neither a family of environments nor of the form'),
        ({"environments": ["minatar/breakout", "minitar"]}, 'did you mean "minatar"?'),
        ({"environments": ["minatar/breakout", "asterix"]}, "minatar/asterix"),
        ({"seeds": "three"}, "seeds is 'three', not a whole number"),
        ({"agents": {"REM": {"agent": "rem", "presets": "x"}}}, 'did you mean "preset"?'),
        ({"agents": {"REM": {"preset": "paper"}}}, "the key agent is missing"),
        ({"agents": {"REM": {"agent": "ram"}}}, 'there is no agent "ram"'),
        ({"agents": {"REM": {"agent": "rem", "options": {"heads": 4}}}}, 'there is no setting "heads"'),
        ({"training": {"step": 5}}, 'there is no setting "step": did you mean "steps"?'),
        ({"training": {"steps": 0}}, "steps is 0"),
        ({"views": {"all": {"frist": 3}}}, 'no view "frist": did you mean "first"?'),
        ({"data": "logs/{game}", "collect": {"agent": "dqn"}}, "give exactly one of data"),
        ({"beside": {"BC": {"agent": "rem", "view": {"bets": 1}}}}, 'no view "bets": did you mean "best"?'),
        ({"collect": {"seeds": 4, "kept": 5}}, "kept is 5: it must be from 0 to 4"),
        (
            {"collect": {"seeds": 4, "kept": 2}, "training": {"data_per_seed": "whole"}},
            'kept is 2, but data_per_seed = "whole" learns from all players',
        ),
        ({"collect": {"seeds": 2}}, "3 seeds and 2 players: make them equal"),
        # These were found out by the run of the third seed, after the logs were recorded.
        ({"collect": {"seeds": 1}, "training": {"data_per_seed": "own"}}, "3 seeds and 1 players"),
        ({"collect": {"seeds": 2}, "training": {"data_per_seed": "own"}}, "3 seeds and 2 players"),
        ({"beside": {"REM": {"agent": "dqn"}}}, "REM is in agents and in beside: give one of them"),
        *(
            ({"data": path}, "write {environment}, {game} or {run}")
            for path in ("{", "logs/{gmae}", "{}", "{run.real}", "{run:99d}", "{run!r}")
        ),
        ({"recipe": "smal"}, 'there is no recipe "smal": did you mean "small"?'),
        (
            {"recipe": "auto"},
            'the recipe "auto" follows the data, which a study knows only when it runs: name',
        ),
        ({"collect": {"agnet": "dqn"}}, 'there is no key "agnet": did you mean "agent"?'),
        ({"collect": {"agent": "dqn", "steps": 9}}, '"steps" is a setting of play: write settings ='),
        ({"figures": ["bar"]}, 'no figure "bar": did you mean "bars"?'),
        ({"figures": "bars"}, "figures is 'bars', not a list of texts"),
        ({"figures": [4]}, "figures is [4], not a list of texts"),
        ({"seeds": True}, "seeds is True, not a whole number"),
        ({"seeds": 2**70}, "not a whole number"),
        ({"environments": [["minatar"]]}, "environments is [['minatar']], not a list of texts"),
        ({"agents": {"REM": "rem"}}, "agents: REM is 'rem', not a table"),
        ({"agents": {"REM": {"agent": 3}}}, "REM: agent is 3, not text"),
        ({"agents": {"REM": {"agent": "rem", "options": 3}}}, "REM: options is 3, not a table"),
        ({"agents": {"REM": {"agent": "rem", "view": {"best": "most"}}}}, "not a table of numbers"),
        (
            {"agents": {"REM": {"agent": "rem", "options": {"columns": "4"}}}},
            "columns is '4', not a whole number",
        ),
        (
            {"agents": {"REM": {"agent": "rem", "options": {"optimizer.epsilon": []}}}},
            "epsilon is [], not a number",
        ),
        (
            {"agents": {"REM": {"agent": "rem", "options": {"optimizer": "adam"}}}},
            "optimizer is 'adam', not a table",
        ),
        ({"training": {"gamma": "0.9"}}, "gamma is '0.9', not a number"),
        ({"training": {"gamma": True}}, "gamma is True, not a number"),
        ({"training": {"steps": {}}}, '"steps" is a single value'),
        ({"training": {"sampling": ["uniform"]}}, "sampling is ['uniform'], not text"),
        ({"training": {"memory_gib": "much"}}, "memory_gib is 'much', not a number or none"),
        ({"views": {"all": 0.1}}, "views: all is 0.1, not a table of numbers"),
        ({"views": {"all": {"first": "0.1"}}}, "all is {'first': '0.1'}, not a table of numbers"),
        ({"views": {"all": {"first": float("nan")}}}, "the view first is nan: it must be above 0"),
        ({"views": {"100%": {"first": 1.0}}}, "the view first is 1: that is one transition; for all of"),
        ({"views": {"10%": {"best": 10}}}, "the view best is 10: it is a share, so at most 1"),
        ({"read_at": {"5X": 3000}}, "read_at has 5X at step 3,000: there are evaluations every"),
        ({"read_at": {"1X": 150}}, "up to 200; choose one of them"),
        ({"read_at": {"1X": 0}}, "read_at has 1X at step 0"),
        ({"read_at": {"1X": "late"}}, "read_at is {'1X': 'late'}, not a table of whole numbers"),
        ({"select": {"updates": "few"}}, "select: updates is 'few', not a whole number"),
        ({"collect": {"settings": [500]}}, "collect: settings is [500], not a table"),
    ],
    ids=str,
)
def test_mistakes_are_answered_in_one_line(changes, complaint):
    with pytest.raises(UsageError) as caught:
        read(**changes)
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def test_a_family_stands_for_its_games_and_no_game_is_played_twice():
    names = ("mujoco/HalfCheetah", "mujoco/Hopper", "mujoco/Walker2d")
    assert study_file.environments("mine", ["mujoco", "mujoco/Hopper"]) == names


BUGGY = """
from dataclasses import dataclass
from optimist.agents.dqn import Dqn

@dataclass(frozen=True, kw_only=True)
class Buggy(Dqn):
    def __post_init__(self):
        len(5)
"""


def test_an_error_of_code_is_not_called_a_mistake_in_the_file(tmp_path, monkeypatch):
    (tmp_path / "buggy_agent.py").write_text(BUGGY)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TypeError, match="has no len"):
        read(agents={"Buggy": {"agent": "buggy_agent:Buggy"}})


def test_none_is_written_as_text():
    training = {"steps": 200, "evaluation_steps": "none", "memory_gib": "none", "clip_rewards": "none"}
    record = jobs_of(training=training)[-1].record()
    assert (record.evaluation_steps, record.memory_gib, record.clip_rewards) == (None, None, None)


def test_the_figures_are_those_that_are_named():
    assert read().figures == ()
    assert read(figures=["bars", "parts"]).figures == ("bars", "parts")
    assert (
        "bars" in study_file.load("dqn-vs-qr").figures and "parts" in study_file.load("dataset-size").figures
    )


def test_a_study_without_scales_has_one_size():
    said = table()
    (only,) = said.pop("scales").values()
    (one,), (other,) = (
        study_file.read("mine", {**said, **only}, size).jobs()[:1] for size in ("mini", "mine")
    )
    assert one == other


def test_the_game_in_a_path_of_data_has_no_path_of_a_file(monkeypatch):
    monkeypatch.setattr(study_file, "environments", lambda study, names: tuple(names))
    jobs = jobs_of(environments=["/home/me/keen.py:Corridor/short"], data="logs/{game}/{run}")
    logs = Path("logs/short").absolute()
    assert {job.data for job in jobs if job.label} == {str(logs / str(run)) for run in (1, 2, 3)}


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        ({"training": {"batch": 4}}, {}),
        ({"select": {"updates": 5, "rule": "fqe"}}, {"select": {"updates": 7}}),
        ({"select": {"updates": 5}}, {"select": {}}),
    ],
)
def test_settings_outside_the_scales_are_never_lost(outside, inside):
    """A batch above a scale that has a training of its own was left out without a word."""
    (word, lost), said = next(iter(outside.items())), table(**inside)
    lost = ", ".join(sorted(lost.keys() - said["scales"]["tiny"][word].keys()))
    problem = f"study mine: scales.tiny has a table {word} of its own, so {lost} outside the scales would not"
    with pytest.raises(UsageError, match=problem):
        study_file.read("mine", {**said, **outside}, "tiny")


def test_settings_outside_the_scales_that_a_scale_has_too_are_replaced():
    said = {**table(), "training": {"steps": 5}, "views": {"half": {"fraction": 0.5}}}
    jobs = study_file.read("mine", said, "tiny").jobs()
    assert {job.part for job in jobs if job.label} == {"all", "10%"} and jobs[-1].steps() == 200


def test_unknown_studies_scales_and_files(tmp_path):
    with pytest.raises(UsageError, match='there is no study "asymptotics": did you mean "asymptotic"?'):
        study_file.load("asymptotics")
    with pytest.raises(UsageError, match='has no scale "huge"'):
        study_file.load("asymptotic", "huge")
    (tmp_path / "broken.toml").write_text("agents = [")
    (tmp_path / "latin.toml").write_bytes('title = "é"'.encode("latin-1"))
    (tmp_path / "digits.toml").write_text("seeds = " + 5000 * "1")
    (tmp_path / "deep.toml").write_text("seeds = " + 5000 * "[")
    for name in ("broken", "latin", "digits", "deep"):
        with pytest.raises(UsageError, match="is not a study: its TOML cannot be read"):
            study_file.load(str(tmp_path / f"{name}.toml"))


def test_nested_settings_are_reached_by_dots():
    assert with_values(Training(), {"batch": 7}, "here").batch == 7
    with pytest.raises(UsageError, match='here: there is no setting "bacth": did you mean "batch"?'):
        with_values(Training(), {"bacth": 7}, "here")
