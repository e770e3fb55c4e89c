"""Losses on held-back episodes are logged, and nothing else of a run changes."""

import jax
import numpy as np
import pytest

from little import outcome, played, small, vectors
from optimist.data import Dataset, Sampler
from optimist.errors import DataError, DivergedError, UsageError
from optimist.training.learner import Learner
from optimist.training.measures import HeldOut, held_out_courses, held_out_remarks
from optimist.training.offline import OfflineTraining
from optimist.training.run import load_run
from optimist.training.settings import Training
from optimist.training.storage.rows import read_metrics
from optimist.training.storage.run_folder import read_config

NAME = "held_out_loss_q"


def train(data, out, agent="dqn", *, seeds=(0, 1), **settings):
    training = Training(**{"steps": 40, "batch": 4, "evaluate_every": 20, **settings})
    return OfflineTraining(small(agent), data, training, out=out, seeds=seeds).prepare()


def without_held(out) -> list[dict]:
    return [{name: value for name, value in row.items() if name != NAME} for row in read_metrics(out)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("held") / "run"
    train(vectors(), out, hold_out=0.2).run()
    return out


def test_every_log_has_the_held_out_loss_of_every_seed(run):
    assert len(read_metrics(run)) == 4
    assert all(np.isfinite(row[NAME]) for row in read_metrics(run))
    assert len({row[NAME] for row in read_metrics(run)}) == 4  # seeds and steps differ
    assert read_config(run)["training"]["hold_out"] == 0.2


def test_training_learns_from_the_rest_alone_and_to_the_same_bits(run, tmp_path):
    kept, _ = vectors().hold_out(0.2)
    train(kept, tmp_path / "kept", hold_out=0).run()
    ours, theirs = load_run(run), load_run(tmp_path / "kept")
    jax.tree.map(np.testing.assert_array_equal, ours.params, theirs.params)
    assert without_held(run) == read_metrics(tmp_path / "kept")
    assert read_config(run)["dataset"]["fingerprint"] == kept.fingerprint


def test_the_loss_is_the_agents_own_on_held_back_steps(run):
    """The last row is the loss of the last state on the fixed batch, computed here once more."""
    _, held = vectors().hold_out(0.2)
    training = train(vectors(), run, hold_out=0.2)
    step, state = training.folder.load_state(like=training.learner.shapes((0, 1)))
    training.folder.release()
    batch = held.batch(256, seed=1, step=2**40, gamma=0.99)
    batch = batch._replace(reward=training.training.reward_scale * batch.reward)
    alone = jax.tree.map(lambda leaf: leaf[1], (state.params, state.targets))
    loss = training.learner.losses(*alone, batch, jax.random.PRNGKey(1))["q"]
    last = [row for row in read_metrics(run) if row["seed"] == 1 and row["step"] == step][-1]
    assert last[NAME] == pytest.approx(float(loss), rel=1e-5)


def test_a_continued_run_measures_on_the_same_batch(run, tmp_path):
    train(vectors(), tmp_path, hold_out=0.2, steps=20).run()
    train(vectors(), tmp_path, hold_out=0.2).run()
    assert outcome(tmp_path) == outcome(run)


def test_each_seed_holds_back_from_its_own_log(tmp_path):
    data = vectors(provenance={"seeds": [5, 6], "collection": {"lanes": 1}})
    with pytest.raises(DataError, match="cannot be held back"):  # the second player recorded nothing
        train(data, tmp_path / "a", seeds=(5, 6), hold_out=0.2, data_per_seed="own")
    training = train(data, tmp_path / "b", seeds=(5,), hold_out=0.2, data_per_seed="own")
    training.folder.release()
    (kept,), (held,) = training.data.logs, training.data.held
    assert len(kept) + len(held) == len(data.played_by(5))
    assert held.fingerprint == data.played_by(5).hold_out(0.2)[1].fingerprint


def test_every_objective_of_an_actor_critic_has_one():
    random = np.random.default_rng(0)
    columns = (random.normal(size=(60, 3)), random.uniform(-1, 1, (60, 2)), random.normal(size=60))
    data = Dataset.from_arrays(*columns, np.arange(60) % 6 == 5, truncations=False)
    learner = Learner(small("td3"), data.spec)
    (row,) = HeldOut(learner, [Sampler(data, 8)]).rows(learner.init((0,)))
    assert set(row) == {"held_out_loss_actor", "held_out_loss_critic"}


def test_a_held_out_loss_that_is_not_finite_stops_the_run(tmp_path):
    data = vectors()
    data.timeline.reward[data.hold_out(0.2)[1].steps()] = 1e30  # its square exceeds float32
    with pytest.raises(DivergedError, match=f"{NAME} of seed 0 is not finite"):
        train(data, tmp_path, "discrete_iql", seeds=(0,), steps=1, hold_out=0.2).run()


def test_another_share_is_another_run(run):
    with pytest.raises(Exception, match="hold_out: 0.2 saved, 0.1 requested"):
        train(vectors(), run)
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(UsageError, match="hold_out is "):
            Training(hold_out=share)


# The default.


def lines_of(caplog, word: str) -> list[str]:
    return [line for line in caplog.messages if word in line]


def test_without_an_environment_a_tenth_is_held_out_and_a_line_says_so(tmp_path, caplog):
    data = vectors()
    train(data, tmp_path).run()
    assert read_config(tmp_path)["training"]["hold_out"] == 0.1
    assert read_config(tmp_path)["dataset"]["fingerprint"] == data.hold_out(0.1)[0].fingerprint
    episodes, held = len(data.starts), len(data.hold_out(0.1)[1].starts)
    (line,) = lines_of(caplog, "--hold-out")
    assert line.startswith(f"{held} of {episodes} episodes are held out")
    assert line.endswith("--hold-out 0 learns from all")


def test_with_an_environment_or_on_request_every_episode_is_learned_from(tmp_path, caplog):
    data = Dataset.open(played(tmp_path / "log", rows=40))
    assert len(data.starts) >= 10
    for place, (environment, more) in enumerate((("minatar/breakout", {}), (None, {"hold_out": 0}))):
        settings = Training(steps=2, batch=4, evaluate_every=2, episodes=1, **more)
        out = tmp_path / str(place)
        OfflineTraining(small("dqn"), data, settings, out=out, environment=environment).run()
        assert read_config(out)["training"]["hold_out"] == 0
        assert read_config(out)["dataset"]["fingerprint"] == data.fingerprint
    assert lines_of(caplog, "held out") == lines_of(caplog, "hold some out") == []


@pytest.mark.parametrize("episodes", [1, 9])
def test_of_a_very_small_log_nothing_is_held_out_and_a_line_says_so(tmp_path, caplog, episodes):
    ends = np.tile(np.arange(5) == 4, episodes)
    steps = len(ends)
    data = Dataset.from_arrays(np.eye(steps), np.arange(steps) % 2, ends * 1.0, ends, truncations=False)
    train(data, tmp_path, steps=1).run()
    assert read_config(tmp_path)["training"]["hold_out"] == 0
    (line,) = lines_of(caplog, "too few to hold some out")
    assert line.startswith(f"the log has {episodes} episode")


def test_the_last_episodes_by_time_are_held_out_on_request(tmp_path):
    data = vectors()
    training = train(data, tmp_path, hold_out_last=0.2)
    training.folder.release()
    (kept, _), (held, _) = training.data.logs, training.data.held
    assert held.episodes.time.min() > kept.episodes.time.max()
    assert len(held.starts) == round(0.2 * len(data.starts))
    settings = read_config(tmp_path)["training"]
    assert settings["hold_out_last"] == 0.2 and settings["hold_out"] == 0
    with pytest.raises(UsageError, match="hold_out_last of the last: choose one"):
        Training(hold_out=0.1, hold_out_last=0.1)


# What the end of a training says.


def looks(values: dict[int, list[float]], name: str = NAME) -> list[dict]:
    """Rows of metrics: the values of each seed, one every 250 steps."""
    return [
        {"step": 250 * (place + 1), "seed": seed, name: value}
        for seed, each in values.items()
        for place, value in enumerate(each)
    ]


def noisy(levels: np.ndarray, seeds=(0, 1), spread=0.05) -> dict[int, list[float]]:
    random = np.random.default_rng(0)
    return {seed: (levels * random.normal(1, spread, len(levels))).tolist() for seed in seeds}


TIME = np.linspace(0, 1, 400)


def held_out_lines(rows: list[dict]) -> list[str]:
    return [remark.line for remark in held_out_remarks(rows)]


def test_a_loss_that_rises_as_the_one_in_training_does_is_no_warning():
    """Values that grow raise both: the tutorial's agent learns only then what each visitor likes."""
    rows = looks(noisy(20 + 36 * TIME)) + looks(noisy(19 + 29 * TIME), "loss_q")
    (remark,) = held_out_remarks(rows)
    assert remark.line.startswith("the held-out loss q rose from step ") and not remark.warns
    assert remark.line.endswith("; the loss in training rose too: values grow, which is no overfitting")


def test_a_loss_that_rises_again_is_said_with_the_step_from_which_it_rose():
    (line,) = held_out_lines(looks(noisy(1 + 4 * (TIME - 0.4) ** 2)))
    (found,) = held_out_courses(looks(noisy(1 + 4 * (TIME - 0.4) ** 2))).values()
    assert found.rose and found.fell and 0.3 < found.step / 100_000 < 0.5
    assert line.startswith("the held-out loss q fell from 1.")
    assert f", and rose from step {found.step:,} on, from " in line
    assert f"train for fewer steps (--steps {found.step:_})" in line


def test_a_loss_that_rises_from_the_first_look_on_is_said():
    rows = looks(noisy(126 + 90 * TIME)) + looks(noisy(126 - 90 * TIME), "loss_q")
    (line,), (found,) = held_out_lines(rows), held_out_courses(rows).values()
    assert found.step < 10_000
    assert line.startswith("the held-out loss q rose from step ") and "fell from" not in line
    assert f": train for fewer steps (--steps {found.step:_})" in line


@pytest.mark.parametrize(
    ("levels", "said"), [(2 - TIME, "fell from 1.9"), (1 + 0 * TIME, "stayed about 0.9")]
)
def test_noise_and_one_outlier_are_no_rise(levels, said):
    values = noisy(levels, spread=0.2)
    values[0][-1] = 100.0
    (line,) = held_out_lines(looks(values))
    assert line.startswith(f"the held-out loss q {said}") and "--steps" not in line


def test_two_looks_say_nothing():
    assert held_out_lines(looks({0: [1.0, 5.0]})) == [] == held_out_lines([])


def test_a_training_ends_with_the_line(tmp_path, caplog):
    train(vectors(), tmp_path, steps=60).run()
    (line,) = lines_of(caplog, "the held-out loss q ")
    assert line == held_out_lines(read_metrics(tmp_path))[0]
