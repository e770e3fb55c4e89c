"""An online agent: every step it takes is kept, it learns on schedule, and it survives being killed."""

import json
import signal
from dataclasses import replace

import jax
import numpy as np
import pytest

from little import GAME, played, small
from optimist.cli.main import main
from optimist.data import Dataset
from optimist.data.verify import verify
from optimist.equations.optimizers import RmsProp
from optimist.errors import DataError, DivergedError, RunError, UsageError
from optimist.training import services
from optimist.training.evaluation import evaluate
from optimist.training.online import OnlineTraining
from optimist.training.play.playing import acting_key
from optimist.training.run import load_run
from optimist.training.settings import Collection
from optimist.training.storage.rows import read_episodes
from optimist.training.storage.run_folder import read_config
from optimist.training.terminal import Interrupted

SHORT = Collection(
    steps=240,
    lanes=4,
    window=100,
    warm_up=40,
    epsilon_decay=100,
    update_period=4,
    batch=8,
    checkpoint_seconds=1e9,
)


def collect(out, collection=SHORT, *, agent=None, game=GAME, **options):
    return OnlineTraining(agent or small("dqn"), game, collection, out=out, **options).run()


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    out = tmp_path_factory.mktemp("collected")
    return out, collect(out)


def assert_continuous(data: Dataset, steps: int, lanes: int):
    """All steps are there, each once, and each lane is one stretch of time."""
    assert len(data) == steps
    np.testing.assert_array_equal(np.sort(data.timeline.time), np.arange(steps))
    for lane in np.unique(data.timeline.lane):
        assert set(np.diff(data.timeline.time[data.timeline.lane == lane])) <= {lanes}


def test_everything_seen_is_recorded(collected):
    out, _ = collected
    assert verify(out) == []
    assert_continuous(Dataset.open(out), steps=240, lanes=4)


def test_the_recording_says_where_it_is_from(collected):
    out, _ = collected
    origin, config = Dataset.open(out).provenance, read_config(out / "agent")
    assert origin["environment"] == config["environment"] == GAME
    assert origin["agent"] == config["agent"]
    assert origin["collection"]["epsilon_decay"] == 100
    assert origin["seeds"] == [0]
    assert {"minatar", "numpy", "jax", "optimist"} - {"optimist"} <= origin["versions"].keys()


def test_the_player_is_a_run_like_any_other(collected):
    out, state = collected
    run = load_run(out / "agent")
    assert run.step == 240
    assert run.policy(np.zeros(run.learner.spec.observation_shape, bool)) in range(3)
    assert int(state.step) == (240 - 40) // 4
    assert (out / "agent" / "DONE").exists()


def test_steps_are_rounded_up_to_whole_vector_steps(tmp_path):
    collect(tmp_path, replace(SHORT, steps=30, warm_up=1000))
    assert len(Dataset.open(tmp_path)) == 32


def test_the_target_follows_its_period(collected, tmp_path):
    """Updates are numbered from 0, and every seventh is followed by a copy: the 50th is, the 51st is not."""

    def is_a_copy(state) -> bool:
        return np.array_equal(state.params["q"]["weight"], state.targets["q"]["weight"])

    _, state = collected
    assert int(state.step) == 50 and is_a_copy(state)
    state = collect(tmp_path, replace(SHORT, steps=244))
    assert int(state.step) == 51 and not is_a_copy(state)


def test_exploration_is_all_through_the_warm_up_then_falls_in_a_line():
    schedule = Collection(warm_up=100, epsilon_decay=200, epsilon=0.1)
    steps = [0, 50, 100, 150, 200, 300, 301, 10**6]
    expected = [1, 1, 1, 0.775, 0.55, 0.1, 0.1, 0.1]
    np.testing.assert_allclose([schedule.exploration(step) for step in steps], expected)
    at_once = Collection(warm_up=100, epsilon_decay=0, epsilon=0.1)
    assert [at_once.exploration(step) for step in (100, 101)] == [1, 0.1]
    assert Collection(warm_up=0, epsilon_decay=0, epsilon=0.1).exploration(0) == 0.1
    played_by_the_policy = Collection(warm_up=100, epsilon_decay=200, epsilon=0.1, epsilon_start=0)
    assert {played_by_the_policy.exploration(step) for step in steps} == {0.1}


def test_the_warm_up_is_played_at_random(tmp_path):
    collect(tmp_path, replace(SHORT, steps=1200, warm_up=1200))
    counts = np.bincount(Dataset.open(tmp_path).timeline.action, minlength=3)
    assert abs(counts - 400).max() < 5 * np.sqrt(1200 * 2 / 9)


@pytest.mark.parametrize("warm_up", [0, 5])
def test_a_short_warm_up_only_delays_the_first_updates(tmp_path, warm_up):
    state = collect(tmp_path, replace(SHORT, steps=40, warm_up=warm_up))
    assert int(state.step) == (40 - warm_up) // 4


def test_the_same_seed_plays_the_same_game(collected, tmp_path):
    collect(tmp_path)
    assert Dataset.open(tmp_path).fingerprint == Dataset.open(collected[0]).fingerprint
    collect(tmp_path / "other", seeds=(1,))
    assert Dataset.open(tmp_path / "other").fingerprint != Dataset.open(collected[0]).fingerprint


def test_the_same_call_again_changes_nothing_and_more_steps_go_on(tmp_path):
    collect(tmp_path)
    before = Dataset.open(tmp_path).fingerprint
    collect(tmp_path)
    assert Dataset.open(tmp_path).fingerprint == before
    state = collect(tmp_path, replace(SHORT, steps=320))
    data = Dataset.open(tmp_path)
    assert_continuous(data, steps=320, lanes=4)
    assert data.timeline.lane.max() == 7  # new episodes, hence new lanes
    assert int(state.step) == (320 - 40) // 4


EVALUATED = replace(SHORT, evaluate_every=70, episodes=2)


def test_evaluations_come_in_time_and_leave_the_play_alone(collected, tmp_path):
    """The vector step at or after every 70th step, and the last one."""
    collect(tmp_path, EVALUATED)
    rows = read_episodes(tmp_path / "agent")
    assert [(row.step, row.episode) for row in rows] == [(s, e) for s in (72, 140, 212, 240) for e in (0, 1)]
    assert Dataset.open(tmp_path).fingerprint == Dataset.open(collected[0]).fingerprint


@pytest.mark.parametrize("stopped_at", [140, 240])
def test_an_evaluation_that_was_stopped_is_made_up_for(tmp_path, monkeypatch, stopped_at):
    """Ctrl-C during an evaluation: what was played is saved, and the same call goes on by evaluating."""

    def interrupted(*arguments, step, stop, **options):
        if step == stopped_at:
            signal.raise_signal(signal.SIGINT)
            assert stop()
            return []
        return evaluate(*arguments, step=step, stop=stop, **options)

    collect(tmp_path / "whole", EVALUATED)
    monkeypatch.setattr(services, "evaluate", interrupted)
    with pytest.raises(Interrupted):
        collect(tmp_path / "stopped", EVALUATED)
    assert len(Dataset.open(tmp_path / "stopped")) == stopped_at
    monkeypatch.setattr(services, "evaluate", evaluate)
    collect(tmp_path / "stopped", EVALUATED)
    whole, stopped = (read_episodes(tmp_path / name / "agent") for name in ("whole", "stopped"))
    known = [row for row in whole if row.step <= stopped_at]
    assert stopped[: len(known)] == known  # beyond it, play went on with new episodes
    assert [(row.step, row.episode) for row in stopped] == [(row.step, row.episode) for row in whole]


def test_several_seeds_play_side_by_side_and_are_told_apart(tmp_path):
    """Twice, the second time going on: the players keep their numbers in the new lanes."""
    for steps in (80, 120):
        state = collect(tmp_path, replace(SHORT, steps=steps, lanes=2), seeds=(7, 4, 9))
    data = Dataset.open(tmp_path)
    assert_continuous(data, steps=3 * 120, lanes=6)
    assert state.key.shape[0] == 3 and int(state.step) == (120 - 40) // 4
    for place, seed in enumerate((7, 4, 9)):
        log = data.played_by(seed)
        assert len(log) == 120
        assert set(log.timeline.lane[log.steps()]) == {2 * place, 2 * place + 1, 6 + 2 * place, 7 + 2 * place}
    metrics = [json.loads(line) for line in (tmp_path / "agent" / "metrics.jsonl").read_text().splitlines()]
    assert {row["seed"] for row in metrics} == {7, 4, 9}
    weights = jax.tree.leaves(state.params)[0]
    assert len({np.asarray(each).tobytes() for each in weights}) == 3
    with pytest.raises(DataError, match="no player with seed 1 was recorded; recorded seeds: 7, 4, 9"):
        data.played_by(1)


def test_a_recording_made_by_others_is_never_cut_back(tmp_path):
    played(tmp_path, rows=20)
    before = Dataset.open(tmp_path).fingerprint
    with pytest.raises(RunError, match="holds a recording without the run that made it"):
        collect(tmp_path)
    assert Dataset.open(tmp_path).fingerprint == before
    collect(tmp_path, restart=True)
    assert len(Dataset.open(tmp_path)) == 240


def test_restart_throws_the_recording_away(tmp_path):
    collect(tmp_path, replace(SHORT, steps=80))
    with pytest.raises(RunError, match="training.epsilon_decay: 100 saved, 50 requested"):
        collect(tmp_path, replace(SHORT, epsilon_decay=50))
    collect(tmp_path, replace(SHORT, epsilon_decay=50), restart=True)
    data = Dataset.open(tmp_path)
    assert_continuous(data, steps=240, lanes=4)
    assert data.timeline.lane.max() == 3


def test_senseless_settings_are_refused():
    for name, value in (
        ("steps", 0),
        ("lanes", 0),
        ("window", 0),
        ("update_period", 0),
        ("batch", -1),
        ("warm_up", -1),
        ("epsilon", 1.5),
        ("epsilon_decay", -1),
        ("gamma", 2.0),
        ("clip_rewards", -1.0),
        ("checkpoint_seconds", -1.0),
    ):
        with pytest.raises(UsageError, match=f"{name} is "):
            Collection(**{name: value})


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"seeds": (-1,)}, UsageError),
        ({"game": "gym/Pendulum-v1"}, DataError),
        ({"game": "gym/Pong"}, UsageError),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_before_anything_is_written(tmp_path, options, kind):
    with pytest.raises(kind):
        collect(tmp_path / "data", **options)
    assert not (tmp_path / "data").exists()


def test_a_loss_that_is_not_finite_stops_the_play(tmp_path):
    hot = small("dqn", optimizer=RmsProp(learning_rate=1e30))
    with pytest.raises(DivergedError, match="not finite"):
        collect(tmp_path, agent=hot)
    assert list((tmp_path / "agent" / "diverged").glob("step-*.safetensors"))
    (only,) = (tmp_path / "agent" / "checkpoints").iterdir()
    assert only.name.startswith("step-000000000000-")


def test_a_recording_that_others_appended_to_says_that_nothing_more_is_recorded(tmp_path):
    """It ended with 0 and had recorded nothing."""
    collect(tmp_path / "data")
    collect(tmp_path / "more", seeds=(7,))
    assert main(["data", "append", str(tmp_path / "more"), "--to", str(tmp_path / "data")]) == 0
    steps = len(Dataset.open(tmp_path / "data"))
    with pytest.raises(RunError, match="cannot go on to 400: collect into another folder, and append that"):
        collect(tmp_path / "data", replace(SHORT, steps=400))
    collect(tmp_path / "data")  # what it had played before is done
    assert len(Dataset.open(tmp_path / "data")) == steps


def test_acting_draws_from_a_stream_that_the_learner_does_not_use():
    """The learner splits a seed's key into that of the weights and that of its steps; acting once split the
    same key in the same way."""
    for seed in (0, 5):
        key, root = np.asarray(acting_key(seed)), jax.random.PRNGKey(seed)
        for other in (root, *jax.random.split(root), *jax.random.split(root, 100)):
            assert not (key == np.asarray(other)).all()
    assert not (np.asarray(acting_key(0)) == np.asarray(acting_key(5))).all()
