"""Rewards are clipped in the paper's environments only; training says what it does to them."""

from dataclasses import replace

import numpy as np
import pytest

import optimist
from little import small, vectors
from optimist import agents
from optimist.data.disk import manifest
from optimist.data.sampling import FiveBuffers, Sampler
from optimist.data.views import logged_values
from optimist.errors import UsageError
from optimist.training.offline import OfflineTraining
from optimist.training.online import OnlineTraining
from optimist.training.play.replay import Memory, Recall
from optimist.training.resolve import clipping, is_own, observation_scaling, resolve_for_log
from optimist.training.scaling import extremes, outlier, remarks, suggested_limit, value_size
from optimist.training.scaling import suggested_scale as suggestion
from optimist.training.seed_logs import SeedLogs
from optimist.training.settings import Collection, Training
from optimist.training.storage.run_folder import read_config

SHORT = Training(steps=20, evaluate_every=20, batch=8)
TD3 = small("td3")
PLAIN = replace(SHORT, reward_scale=1.0)
QUICK = {"optimizer.learning_rate": 0.03, "optimizer.epsilon": 1e-5}


def suggested_scale(logs, gamma, agent) -> float:
    return suggestion(logs, gamma, agent)[0]


def settled_for(training, dataset, environment) -> Training:
    return resolve_for_log(TD3, training, dataset, (0,), environment=environment).training


def bandit(rewards, steps=400, **options) -> optimist.Dataset:
    """Episodes of one step, with one observation; `rewards(action)` is paid for each of two actions."""
    action = np.arange(steps) % 2
    ends = np.ones(steps, bool)
    return optimist.Dataset.from_arrays(np.ones((steps, 2)), action, rewards(action), ends, **options)


def one_or_ten(action):
    """The first action pays 1, the second 10 half of the time."""
    lucky = np.arange(len(action)) // 2 % 2
    return np.where(action == 0, 1.0, 10.0 * lucky)


def said(caplog, about: str = "") -> list[str]:
    return [record.message for record in caplog.records if record.message.startswith(about)]


def test_the_better_arm_of_a_bandit_is_found_unless_rewards_are_clipped(tmp_path, caplog):
    """REM's loss is Huber's: of rewards above its limit it learns the middle one rather than the mean, so the
    limit follows the rewards. Training says so, and says how to have the published one."""
    agent, steps = small("rem", **QUICK), {"steps": 400, "evaluate_every": 400}
    data = bandit(one_or_ten)
    free = optimist.train(agent, data, out=tmp_path / "free", **steps)
    why = "they sum to about 10, and this agent learns best from sums of about 50"
    assert said(caplog, "rewards") == [
        f"rewards 0 to 10 are multiplied by 5, because {why}; --reward-scale 1 keeps them"
    ]
    assert said(caplog, "errors") == [
        "errors up to 100 count squared, because of rewards up to 50; --huber-limit 1 is the published loss"
    ]
    paper = replace(agent, huber_limit=1.0)
    median = optimist.train(paper, data, out=tmp_path / "median", **steps)
    assert said(caplog, "errors")[1:] == [
        "errors above 1 count linearly, so a rare reward above it counts too little; try --huber-limit 100"
    ]
    clipped = optimist.train(agent, data, out=tmp_path / "clipped", clip_rewards=1.0, **steps)
    assert said(caplog, "rewards")[2:] == [
        "rewards 0 to 10 are clipped to +-1; --clip-rewards none keeps them"
    ]
    assert [run.policy(np.ones(2)) for run in (free, clipped)] == [1, 0]
    assert [run.learner.agent.huber_limit for run in (free, median, clipped)] == [100, 1, 1]
    settings = [read_config(tmp_path / name) for name in ("free", "median", "clipped")]
    assert [each["training"]["reward_scale"] for each in settings] == [5.0, 5.0, 1.0]
    assert [each["agent"]["huber_limit"] for each in settings] == [100.0, 1.0, 1.0]
    assert [each["training"].get("clip_rewards") for each in settings] == [None, None, 1.0]


def test_our_own_logs_and_given_scales_are_left_alone(tmp_path):
    """The logs of the published results: scale and limit are those of the paper."""

    def settled(name, settings=SHORT, agent="rem", huber=None, **options) -> tuple[float, float]:
        data = bandit(lambda action: 100 * one_or_ten(action), **options)
        given = {} if huber is None else {"huber_limit": huber}
        found = OfflineTraining(small(agent, **given), data, settings, out=tmp_path / name).prepare()
        return found.training.reward_scale, found.learner.agent.huber_limit

    assert settled("others") == (0.05, 100.0)
    assert settled("collected", provenance={"collection": {}}) == (1.0, 1.0)
    assert settled("replayed", provenance={"format": "dqn-replay"}) == (1.0, 1.0)
    for game in ("atari/Pong", "minatar/breakout", "minatar_jax/breakout"):
        assert settled(game.replace("/", "-"), provenance={"environment": game}) == (1.0, 1.0)
    assert settled("clipped", replace(SHORT, clip_rewards=1.0)) == (1.0, 1.0)
    assert settled("scaled", replace(SHORT, reward_scale=0.25)) == (0.25, 1000.0)
    assert settled("small", replace(SHORT, reward_scale=1e-4)) == (1e-4, 1.0)
    assert settled("limited", huber=3.0) == (0.05, 3.0)


@pytest.mark.parametrize(
    ("provenance", "environment", "limit"),
    [
        ({"environment": "atari/Pong?no_ops=30"}, None, 1.0),
        ({"environment": "minatar/breakout"}, "", 1.0),
        ({"environment": "minatar_jax/breakout"}, None, 1.0),
        ({"environment": "gym/CartPole-v1"}, None, None),
        ({"environment": "mujoco/Hopper"}, None, None),
        ({"environment": "my_package:Atari/Pong"}, None, None),
        ({}, "minatar/breakout", 1.0),  # a log without a name that is evaluated there
        ({}, None, None),
        ({"format": "dqn-replay", "environment": ""}, None, 1.0),
        ({"format": "npz", "environment": ""}, "", None),
    ],
)
def test_clipping_belongs_to_the_papers_environments(provenance, environment, limit):
    assert clipping(provenance, environment) == limit
    dataset = bandit(one_or_ten, provenance=provenance)
    assert settled_for(SHORT, dataset, environment).clip_rewards == limit
    for asked in (None, 2.0):
        told = replace(SHORT, clip_rewards=asked)
        assert settled_for(told, dataset, environment).clip_rewards == asked


def test_own_logs_are_collected_or_the_papers():
    assert is_own({"collection": {}}) and is_own({"format": "dqn-replay"})
    assert not is_own({}) and not is_own({"environment": "gym/CartPole-v1", "format": "npz"})
    spec = vectors().spec
    for provenance, scaled in (({"collection": {}}, "none"), ({}, "standard")):
        assert observation_scaling(spec, provenance) == scaled
    for other in (replace(spec, frame_dtype="uint8"), replace(spec, frame_shape=(4, 4, 1))):
        assert observation_scaling(other, {}) == "none"


@pytest.mark.parametrize("settings", [Training, Collection])
def test_a_limit_is_a_number_or_one_of_two_words(settings):
    assert settings(clip_rewards="none").clip_rewards is None  # as a study's file says it
    for wrong in ("some", -1, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="it must be above 0, none, or auto"):
            settings(clip_rewards=wrong)


def test_clipping_that_changes_nothing_is_not_worth_a_line():
    data = bandit(lambda action: action * 1.0)
    assert remarks([data], replace(PLAIN, clip_rewards=1.0), TD3) == []
    (line,) = remarks([data], replace(PLAIN, clip_rewards=1.0, reward_scale=3.0), TD3)
    assert line.startswith("rewards 0 to 3 are clipped to +-1")


def test_only_the_part_that_is_learned_from_counts():
    data = bandit(lambda action: np.arange(len(action)) / 100.0)
    (line,) = remarks([data.first(300), data.first(200)], replace(PLAIN, clip_rewards=1.0), TD3)
    assert line.startswith("rewards 0 to 2.99 are clipped")
    assert remarks([data.first(100)], replace(PLAIN, clip_rewards=1.0), TD3) == []


@pytest.mark.parametrize(
    ("size", "scale"), [(40, None), (70, None), (600, "0.1"), (-3_000, "0.02"), (0.02, "2000")]
)
def test_rewards_of_another_size_get_the_suggestion_of_a_scale(size, scale):
    data = bandit(lambda action: np.full(len(action), float(size)))
    found = remarks([data], replace(PLAIN, clip_rewards=None), TD3)
    assert len(found) == (scale is not None)
    if scale:
        assert found[0].endswith(f"try --reward-scale {scale}")
        given = replace(SHORT, clip_rewards=None, reward_scale=0.5)
        assert remarks([data], given, TD3) == []


@pytest.mark.parametrize(
    ("name", "rewards", "limit"),
    [
        ("rem", [0, 10], "10"),
        ("dqn", [-11, 0], "100"),
        ("cql", [-2, 1], "10"),
        ("discrete_bcq", [0, 200], "1000"),
        ("rem", [-1, 1], None),
        ("qr_dqn", [0, 10], None),
        ("discrete_iql", [0, 10], None),
        ("td3", [0, 10], None),
    ],
)
def test_agents_with_a_huber_loss_are_told_of_rewards_above_its_limit(name, rewards, limit):
    data = bandit(lambda action: np.array(rewards, float)[action])
    found = remarks([data], replace(PLAIN, clip_rewards=None), small(name).settled())
    errors = [line for line in found if line.startswith("errors")]
    assert [line.rpartition(" ")[2] for line in errors] == ([limit] if limit else [])
    given = replace(SHORT, clip_rewards=None, reward_scale=1e-3)
    assert remarks([data], given, small(name).settled()) == []


def test_a_limit_of_hubers_loss_is_a_number_above_zero():
    for limit in (0, -1.0, float("inf"), "most"):
        with pytest.raises(UsageError, match="huber_limit is"):
            small("dqn", huber_limit=limit)


@pytest.mark.parametrize(
    ("name", "size", "scale"),
    [
        ("dqn", 60, 1.0),
        ("dqn", 0.01, 5_000.0),
        ("dqn", 400, 0.1),
        ("qr_dqn", 3_000, 0.02),
        ("rem", -30_000, 0.002),
        ("cql", 600, 0.05),
        ("rem_cql", 0.3, 100.0),
        ("discrete_iql", 3_000, 0.005),
        ("c51", 3_000, 0.002),  # its values end at 10
        ("c51", 0.4, 20.0),
        ("hl_gauss", -11, 0.5),
        ("c51_cql", 10, 1.0),
        ("td3", 0.1, 500.0),
        ("dqn", 0, 1.0),
    ],
)
def test_values_get_the_size_at_which_the_agent_learns_best(name, size, scale):
    data = bandit(lambda action: np.full(len(action), float(size)))
    assert suggested_scale([data], 0.99, small(name)) == scale


def purchases(*largest: float, every: float = 100.0, steps: int = 2000) -> optimist.Dataset:
    """Two thousand visits; every tenth one buys for 100, and some of them for other sums."""
    reward = np.where(np.arange(steps) % 10 == 0, every, 0.0)
    reward[500 : 500 + 10 * len(largest) : 10] = largest
    return bandit(lambda action: reward, steps=steps)


def test_a_single_large_reward_does_not_make_the_others_small():
    log = purchases(2e3)
    assert suggested_scale([log], 0.99, small("dqn")) == 0.5 and suggested_limit([log], 1.0) == 1e4
    assert suggested_limit([log.first(500)], 1.0) == 100  # it is not in this part


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (purchases(2e7), (2e7, 500, 100)),
        (purchases(-2e7), (-2e7, 500, 100)),
        (purchases(2e7, 2**40), (2**40, 510, 100)),  # each is far from all smaller ones
        (purchases(9e4), None),
        (purchases(2e7, 2e7), None),  # two of a size are rare, not wrong
        (purchases(1e3, every=0.0), None),  # the only purchase of the log
        (purchases(1e3, 1e3, 1e3, every=0.0), None),
        (purchases(2e7).first(600), (2e7, 500, 100)),
        (purchases(2e7).first(500), None),
        (bandit(lambda action: np.array([1.0, 1e6]), steps=2), None),
    ],
)
def test_an_outlier_is_isolated_and_orders_of_magnitude_larger_than_all_others(log, found):
    assert outlier([log, log]) == found


def test_an_outlier_counts_as_the_largest_other_reward_and_decides_nothing(tmp_path, caplog):
    data = purchases(2e7)

    def settled(agent, **settings):
        run = OfflineTraining(small(agent), data, replace(SHORT, **settings), out=tmp_path / agent).prepare()
        limit, scale = run.training.clip_rewards, run.training.reward_scale
        return scale, limit, getattr(run.learner.agent, "huber_limit", None), run

    assert settled("dqn")[:3] == (0.5, 50.0, 100.0)
    assert settled("cql")[:3] == (0.2, 20.0, 100.0)
    assert settled("c51")[:3] == (0.1, 10.0, None)
    scale, limit, _, run = settled("cql")
    (bound,) = run.data.logged_values(run.training)
    assert bound.largest == 20.0  # the alarm's bound and a limit of targets ignore it, too
    (line,) = [each for each in remarks([data], run.training, run.learner.agent) if "row" in each]
    assert line == (
        "the reward 2e+07 in row 500 is more than 1,000 times as large as all others: it counts as 100; mend "
        "the row, or count it whole with --clip-rewards none"
    )
    run.folder.release()
    kept = replace(SHORT, clip_rewards=None)
    whole = OfflineTraining(small("dqn"), data, kept, out=tmp_path / "whole").prepare().training
    assert (whole.clip_rewards, whole.reward_scale) == (None, 0.0001)
    assert extremes([data], 100.0) == (0.0, 100.0)


def sixty_or_hundred(action):
    return np.where(action == 0, 60.0, 100.0)


def test_values_beyond_the_atoms_are_not_cut_without_a_word(tmp_path, caplog):
    """Both arms pay more than C51's last atom, 10: cut there, they are equal."""
    agent, steps = small("c51", **QUICK), {"steps": 400, "evaluate_every": 400}
    data, why = bandit(sixty_or_hundred), "they sum to up to 100, and the values of this agent end at 10"
    run = optimist.train(agent, data, out=tmp_path / "run", **steps)
    assert said(caplog, "rewards") == [
        f"rewards 60 to 100 are multiplied by 0.1, because {why}; --reward-scale 1 keeps them"
    ]
    assert run.policy(np.ones(2)) == 1 and read_config(run.path)["training"]["reward_scale"] == 0.1
    params = run.params_of(0)
    np.testing.assert_allclose(run.learner.estimate(params, np.ones(2, np.float32)), 10, rtol=0.1)
    optimist.train(agent, data, out=tmp_path / "cut", reward_scale=1.0, **steps)
    assert said(caplog, "rewards")[1:] == [f"rewards 60 to 100: {why}; try --reward-scale 0.1"]


def test_atoms_that_reach_the_values_keep_the_rewards():
    data = bandit(sixty_or_hundred)
    assert suggested_scale([data], 0.99, small("c51", low=0.0, high=200.0)) == 2
    assert suggested_scale([data], 0.99, small("c51", low=-50.0, high=50.0)) == 0.5
    assert suggested_scale([balanced()], 0.99, small("c51")) == 0.1  # a reward of 1, 500 times


def test_the_papers_rewards_keep_the_atoms_as_published(tmp_path):
    data, atari = bandit(sixty_or_hundred, provenance={"collection": {}}), {"environment": "atari/Pong"}
    for name, log, limit in (("own", data, None), ("clipped", bandit(sixty_or_hundred, provenance=atari), 1)):
        found = OfflineTraining(small("c51"), log, SHORT, out=tmp_path / name).prepare()
        assert (found.training.reward_scale, found.training.clip_rewards) == (1, limit)


def balanced() -> optimist.Dataset:
    """Two episodes of 500 steps with a reward of 1 each."""
    ends = np.zeros(1000, bool)
    ends[499::500] = True
    log = (np.zeros((1000, 1)), np.zeros(1000, int), np.ones(1000), ends)
    return optimist.Dataset.from_arrays(*log, truncations=np.zeros(1000, bool))


@pytest.mark.parametrize(("name", "scale"), [("discrete_iql", 0.1), ("cql", 0.2), ("dqn", 0.5)])
def test_values_of_a_hundred_are_too_large_in_an_exponent_and_beside_a_penalty(name, scale):
    assert suggested_scale([balanced()], 0.99, small(name)) == scale


def test_the_size_of_values_is_that_of_discounted_returns():
    data = balanced()
    np.testing.assert_allclose(value_size([data], 0.99), sum(0.99**step for step in range(500)))
    assert value_size([data], 1.0) == 500


@pytest.mark.parametrize("kind", [Sampler, FiveBuffers])
def test_rewards_are_scaled_and_then_clipped(kind):
    data = vectors()
    plain, scaled, both = (
        kind(data, n_step=n, clip=clip, scale=scale).all_rows().reward
        for n, clip, scale in ((3, None, 1.0), (3, None, 0.25), (1, 0.2, 0.25))
    )
    np.testing.assert_allclose(scaled, plain / 4, rtol=1e-6)
    np.testing.assert_allclose(both, np.clip(data.timeline.reward / 4, -0.2, 0.2), rtol=1e-6)


def test_a_replay_scales_and_then_clips_too():
    rewards = np.array([[0.0], [1.0], [-8.0], [0.0]], np.float32)
    nothing = np.zeros((4, 1), int)
    window = Memory(np.zeros((4, 1, 2)), nothing, rewards, nothing, nothing)
    item = np.array([[0, 1, 2], [0, 0, 0]])
    made = Recall(stack=1, gamma=0.9, clip=2.0, scale=0.5)(window, item)
    np.testing.assert_array_equal(made.reward, [0, 0.5, -2])


def test_the_bound_of_values_follows_the_scale_and_the_limit_of_rewards():
    """The values of a diverging agent are compared with the returns of rewards as they are trained."""
    data = vectors()
    for clip, scale in ((None, 0.01), (0.5, 2.0)):
        training = replace(SHORT, gamma=0.9, clip_rewards=clip, reward_scale=scale, hold_out=0)
        (found,) = SeedLogs(data, training, (0,)).logged_values(training)
        assert found == logged_values(data, 0.9, clip=clip, scale=scale) != logged_values(data, 0.9)


@pytest.mark.parametrize(
    ("game", "limit", "encoding"),
    [("minatar/breakout", 1.0, None), ("gym/FrozenLake-v1", None, "one-hot vectors of Discrete(16)")],
)
def test_a_collection_keeps_what_it_was_settled_to(game, limit, encoding, tmp_path):
    settings = Collection(steps=20, lanes=2, window=20, reward_scale=0.5)
    training = OnlineTraining(agents.Random(), game, settings, out=tmp_path)
    with training.folder, training._recorder():
        provenance = manifest.read(tmp_path).provenance
    assert provenance["collection"].get("clip_rewards") == limit
    assert provenance["collection"]["reward_scale"] == 0.5
    assert provenance.get("observations") == encoding
    assert is_own(provenance)
