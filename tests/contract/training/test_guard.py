"""A seed whose values exceed what its log can pay is noticed, and its last healthy policy is kept."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fuse import Bare
from little import outcome, small, vectors
from optimist import agents
from optimist.agents._agent import Objective
from optimist.data import from_arrays
from optimist.data.views import LoggedValues, logged_values
from optimist.equations.optimizers import Adam
from optimist.errors import DivergedError, RunError, UsageError
from optimist.training.guard import Guard, first_health, is_due, remedy
from optimist.training.learner import Learner
from optimist.training.offline import OfflineTraining
from optimist.training.resolve import resolve_collection
from optimist.training.run import load_run
from optimist.training.settings import Training
from optimist.training.storage.rows import read_metrics
from optimist.training.storage.run_folder import Alarm, read_alarms, read_config


@dataclass(frozen=True, kw_only=True)
class Climber(Bare):
    """Its value of every state rises by 1 a step, except that the odd one of its seeds stays at 0."""

    optimizer: Adam = Adam(learning_rate=1.0, epsilon=1e-12)
    fails_at: float = jnp.inf

    def init(self, key, spec):
        return {"height": {"at": jnp.zeros(()), "slope": (key[0] % 2).astype(jnp.float32)}}

    def objectives(self, spec):
        def loss(params, targets, batch, key):
            height = params["height"]
            lost = jnp.where(height["at"] >= self.fails_at, jnp.nan, 0.0)
            return -height["at"] * jax.lax.stop_gradient(height["slope"]) + lost

        return (Objective("height", loss),)

    def estimate(self, spec, params, observation):
        return params["height"]["at"]


def slopes(seeds):
    learner = Learner(Climber(), vectors().spec)
    return np.asarray(learner.init(seeds).params["height"]["slope"])


CALM, WILD = (next(s for s in range(50) if slopes((s,))[0] == slope) for slope in (0, 1))
SHORT = Training(steps=120, evaluate_every=20, batch=4, gamma=0.99, clip_rewards=None, reward_scale=1.0)
LOG = vectors()
BOUND = logged_values(LOG, 0.99).largest  # 10.3: twice of it is reached after step 20


CLIMBER = Climber()


def climb(out, *, agent=CLIMBER, seeds=(CALM, WILD), **settings):
    training = OfflineTraining(agent, LOG, replace(SHORT, **settings), out=out, seeds=seeds).prepare()
    return training.run()


# The rule itself.


def guard_of(bound: float, untrained: float = 0.0, seeds: int = 1) -> Guard:
    learner, names = Learner(small("dqn"), LOG.spec), tuple(range(seeds))
    health = first_health(learner.init(names).params, np.full((seeds, 100), untrained, np.float32))
    return Guard(learner, names, [LoggedValues(0.0, bound)] * seeds, health)


def alarm_steps(guard: Guard, looks: list) -> dict[int, int]:
    """Let the guard look at these values, 100 states of one seed each time; the steps of its alarms."""
    for step, values in enumerate(looks, 1):
        values = np.broadcast_to(np.float32(values), (100,))[None]
        guard.look(10 * step, guard.health.params, values)
    return {seed: alarm.step for seed, alarm in guard.alarms.items()}


@pytest.mark.parametrize("bound", [3.0, 0.1, 7.7255306])
def test_a_value_of_exactly_twice_the_bound_is_no_alarm_and_the_next_larger_is(bound):
    most = np.float32(2) * np.float32(bound)
    more = np.nextafter(most, np.float32(np.inf))
    for sign in (1, -1):
        for value, alarms in ((most / 2, {}), (most, {}), (more, {0: 30})):
            assert alarm_steps(guard_of(bound), [sign * value] * 9) == alarms


def test_only_three_looks_in_a_row_are_an_alarm():
    assert alarm_steps(guard_of(1.0), [3, 3, 1, 3, 3, 1, 3, 3]) == {}
    assert alarm_steps(guard_of(1.0), [3, 3, 1, 3, 3, 3, 1, 3, 3, 3]) == {0: 60}


@pytest.mark.parametrize(("outliers", "alarms"), [(5, {}), (6, {0: 30})])
def test_a_twentieth_of_the_states_may_be_outliers(outliers, alarms):
    values = np.where(np.arange(100) < outliers, 1e9, 0.0)
    assert alarm_steps(guard_of(1.0), [values] * 3) == alarms


def test_an_untrained_network_is_not_diverged_however_small_the_rewards():
    assert alarm_steps(guard_of(0.01, untrained=0.5), [0.5, 0.9, 1.0, 0.4]) == {}
    assert alarm_steps(guard_of(0.01, untrained=0.5), [1.1] * 3) == {0: 30}


def test_a_log_without_rewards_has_no_bound():
    guard = guard_of(0.0)
    assert alarm_steps(guard, [1e9] * 4) == {}
    (row,) = guard.look(50, guard.health.params, np.ones((1, 100), np.float32))
    assert row == {"estimate": 1.0, "logged_value": 0.0}


def test_the_figures_are_relative_to_the_largest_return_of_the_log():
    guard = guard_of(4.0, untrained=1.0)
    (row,) = guard.look(10, guard.health.params, np.full((1, 100), -2, np.float32))
    assert row == {"estimate": -2.0, "logged_value": 0.0, "value_ratio": 0.5, "value_drift": 0.75}


def test_looks_are_due_once_in_a_thousand_steps():
    due = [step for step in range(250, 5001, 250) if is_due(step, 250)]
    assert due == [1000, 2000, 3000, 4000, 5000]
    assert is_due(7000, 3000) and is_due(1010, 60) and not is_due(1060, 50)


# In a run.


@pytest.fixture(scope="module")
def continued(tmp_path_factory):
    out = tmp_path_factory.mktemp("guard") / "run"
    climb(out)
    return out


def test_the_alarm_names_the_seed_its_step_and_its_last_healthy_policy(tmp_path, caplog):
    climb(tmp_path)
    assert read_alarms(tmp_path) == {WILD: Alarm(80, 20, *(pytest.approx(x, rel=1e-4) for x in (80, BOUND)))}
    (told,) = [r.getMessage() for r in caplog.records if "diverges" in r.getMessage()]
    assert told.startswith(f"step 80: seed {WILD} diverges: its values reach 80, and no return in its log")
    assert "of step 20, is kept (--step healthy)" in told and "a conservative agent (cql" in told
    assert "--target-limit" not in told  # this agent has no such option


def test_the_ratio_is_logged_at_every_look(continued):
    found = {(row["step"], row["seed"]): row["value_ratio"] for row in read_metrics(continued)}
    for step in range(20, 121, 20):
        assert found[step, WILD] == pytest.approx(step / BOUND, rel=1e-4) and found[step, CALM] == 0


def test_the_healthy_policy_is_the_one_before_the_first_unhealthy_look(tmp_path, continued, caplog):
    climb(tmp_path, evaluate_every=15)  # 15 is within twice the bound
    alarm = read_alarms(tmp_path)[WILD]
    assert (alarm.step, alarm.healthy) == (60, 15)
    run = load_run(tmp_path, step="healthy")
    np.testing.assert_allclose(run.params["height"]["at"], [0, 15], rtol=1e-4)
    assert run.step == 15 and load_run(tmp_path).step == 120
    assert f"seed {CALM} of step 120, seed {WILD} of step 15" in caplog.text
    healthy, kept = load_run(continued, step="healthy"), load_run(continued, step=20)
    np.testing.assert_array_equal(healthy.params["height"]["at"], kept.params["height"]["at"])


def test_without_an_alarm_the_healthy_policy_is_the_last(tmp_path):
    climb(tmp_path, seeds=(CALM,))
    assert load_run(tmp_path, step="healthy").step == 120 and read_alarms(tmp_path) == {}


def test_the_last_policy_of_a_seed_that_diverged_is_not_loaded_without_a_word(tmp_path, continued, caplog):
    said = f"values diverged in seed {WILD} at step 80, and this is the policy of step 120: --step healthy"
    load_run(continued, step="healthy")
    load_run(continued, step=20)
    assert said not in caplog.text
    load_run(continued)
    assert said in caplog.text
    caplog.clear()
    climb(tmp_path, on_divergence="freeze")
    load_run(tmp_path)
    assert "this is the policy" not in caplog.text  # it is the healthy one


def test_the_remedy_is_one_that_helped_and_is_not_used_already():
    """Targets limited by the log ended every divergence of DQN, REM and QR-DQN."""
    cautious = "a conservative agent (cql, discrete_bcq, discrete_iql)"
    for name in ("rem", "dqn", "qr_dqn"):
        assert remedy(Learner(small(name), LOG.spec)) == f"--target-limit auto or {cautious}"
        assert remedy(Learner(small(name, target_limit=3.0), LOG.spec)) == cautious
    assert remedy(Learner(small("c51"), LOG.spec)) == cautious  # its atoms limit its values
    assert "another conservative agent (discrete_bcq, discrete_iql)" in remedy(
        Learner(small("cql"), LOG.spec)
    )


@pytest.mark.parametrize(
    ("name", "lift"), [("cql", 1.0), ("qr_cql", 1.0), ("rem_cql", 1.0), ("sac_cql", 2.5), ("dqn", 0.0)]
)
def test_a_penalty_may_lift_values_by_its_weight_at_every_step(name, lift):
    """On FrozenLake CQL's values were 3.9, the largest return 1, and its policy the best."""
    assert agents.preset(name).lift == lift
    learner = Learner(small("dqn"), LOG.spec)
    health = first_health(learner.init((0,)).params, np.zeros((1, 100), np.float32))
    guard = Guard(learner, (0,), [LoggedValues(0.0, 1.0)], health, lift=10 * lift)
    most = 2 * (1 + 10 * lift)
    assert alarm_steps(guard, [most] * 9) == {}
    assert alarm_steps(guard, [1.01 * most] * 3) == {0: 30}
    assert guard.alarms[0].bound == 1.0 and "no return in its log exceeds 1;" in guard.told(0)


def test_freeze_gives_one_seed_its_last_healthy_policy_and_leaves_the_others(tmp_path, continued):
    state = climb(tmp_path, evaluate_every=15, on_divergence="freeze")
    kept = load_run(tmp_path, step=15).params["height"]["at"]
    np.testing.assert_array_equal(state.params["height"]["at"], kept)
    np.testing.assert_array_equal(state.targets["height"]["at"], kept)
    rows = {(row["step"], row["seed"]): row for row in read_metrics(tmp_path)}
    assert "loss_height" in rows[60, WILD] and "loss_height" not in rows[75, WILD]
    last = pytest.approx(float(kept[1]), rel=1e-6)
    assert rows[75, WILD]["estimate"] == rows[120, WILD]["estimate"] == last
    assert rows[120, CALM]["loss_height"] == 0
    assert (tmp_path / "DONE").exists()


def test_a_frozen_seed_does_not_change_what_the_others_learn(tmp_path):
    """Of two diverging seeds of DQN, one is frozen by hand: the other's bits are those without the freeze."""
    agent = small("dqn")
    learner, seeds = Learner(agent, LOG.spec), (3, 5)
    health = first_health(learner.init(seeds).params, np.zeros((2, 8), np.float32))
    guard = Guard(learner, seeds, [LoggedValues(0.0, 1.0)] * 2, health, "freeze")
    state = learner.init(seeds)
    moved = state._replace(params=jax.tree.map(lambda leaf: leaf + 1, state.params))
    assert guard.hold(moved) is moved  # nothing is frozen yet
    guard.fail(10, np.array([False, True]))
    held = guard.hold(moved)
    for ours, before, first in zip(
        *map(jax.tree.leaves, (held.params, moved.params, state.params)), strict=True
    ):
        np.testing.assert_array_equal(ours[0], before[0])
        np.testing.assert_array_equal(ours[1], first[1])


def test_a_run_whose_seeds_are_all_frozen_goes_on_to_its_end(tmp_path):
    state = climb(tmp_path, seeds=(WILD,), evaluate_every=15, on_divergence="freeze")
    assert state.params["height"]["at"] == pytest.approx(15, rel=1e-4) and int(state.step) == 120
    assert [row["step"] for row in read_metrics(tmp_path)] == list(range(15, 121, 15))
    assert load_run(tmp_path).step == 120


def test_a_seed_whose_figures_are_not_finite_is_frozen_too(tmp_path, caplog):
    agent = Climber(fails_at=30.0)
    state = climb(tmp_path, agent=agent, evaluate_every=15, on_divergence="freeze")
    np.testing.assert_allclose(state.params["height"]["at"], [0, 15], rtol=1e-4)
    alarm = read_alarms(tmp_path)[WILD]
    assert (alarm.step, alarm.healthy, alarm.value) == (45, 15, None)
    assert "its figures are not finite" in caplog.text
    with pytest.raises(DivergedError, match="not finite"):
        climb(tmp_path / "without", agent=agent)


def test_stop_ends_the_run_for_every_seed_and_continue_goes_on_from_there(tmp_path, continued):
    for _ in range(2):  # the same command again stops again
        with pytest.raises(DivergedError, match=f"step 80: seed {WILD} diverges.*every seed stops here"):
            climb(tmp_path, on_divergence="stop")
    assert load_run(tmp_path).step == 80 and not (tmp_path / "DONE").exists()
    climb(tmp_path)
    assert outcome(tmp_path) == outcome(continued) and read_alarms(tmp_path) == read_alarms(continued)
    with pytest.raises(RunError, match="on_divergence"):
        climb(tmp_path, on_divergence="freeze")


@pytest.mark.parametrize("response", ["continue", "freeze"])
def test_a_continued_run_raises_the_same_alarms_and_freezes_the_same(tmp_path, response):
    settings = {"on_divergence": response, "evaluate_every": 20}
    climb(tmp_path / "whole", **settings)
    for steps in range(20, 121, 20):
        climb(tmp_path / "parts", steps=steps, **settings)
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")
    files = [(tmp_path / run / "alarms.json").read_bytes() for run in ("parts", "whole")]
    assert files[0] == files[1] and read_alarms(tmp_path / "parts").keys() == {WILD}


def test_alarms_after_the_checkpoint_are_forgotten_with_what_led_to_them(tmp_path, continued):
    climb(tmp_path, steps=40)
    (tmp_path / "alarms.json").write_bytes((continued / "alarms.json").read_bytes())
    climb(tmp_path, steps=50)
    assert not (tmp_path / "alarms.json").exists()


def test_damaged_alarms_are_written_again(tmp_path, continued):
    climb(tmp_path, steps=100)
    (tmp_path / "alarms.json").write_bytes(b"noise")
    with pytest.raises(RunError, match=r"alarms.json is damaged"):
        read_alarms(tmp_path)
    climb(tmp_path)
    assert read_alarms(tmp_path) == read_alarms(continued)


def test_an_unknown_response_is_refused():
    with pytest.raises(UsageError, match='no on_divergence "frieze": did you mean "freeze"'):
        Training(on_divergence="frieze")


# Real agents.


def narrow(steps: int = 64):
    """Episodes of eight steps that differ in one number; the second action is taken once in 16 steps."""
    at = np.arange(steps)
    observations = np.stack([np.ones(steps), at % 8 / 8], axis=1).astype(np.float32)
    return from_arrays(observations, at % 16 // 15, np.ones(steps), at % 8 == 7, truncations=False)


@pytest.mark.parametrize(
    ("agent", "options", "diverges"),
    [
        ("dqn", {}, True),
        ("dqn", {"target_limit": "auto"}, False),
        ("cql", {"conservatism": 1.0, "optimizer.learning_rate": 1e-3, "target_period": 50}, False),
        ("behaviour_cloning", {}, False),
    ],
    ids=str,
)
def test_an_agent_that_chases_its_own_target_diverges_and_others_do_not(tmp_path, agent, options, diverges):
    """A target that follows at every step, and a high rate: on a narrow log the values of DQN explode."""
    options = {"target_period": 1, "optimizer.learning_rate": 1e-2, **options}
    training = Training(steps=400, evaluate_every=50, batch=16, observations="none")
    OfflineTraining(small(agent, **options), narrow(), training, out=tmp_path).run()
    assert bool(read_alarms(tmp_path)) == diverges
    last = read_metrics(tmp_path)[-1]
    assert "agreement" in last and ("value_ratio" in last) == (agent != "behaviour_cloning")
    assert diverges == (last.get("value_ratio", 0) > 2)


def test_the_limit_of_targets_follows_the_log_and_its_rewards(tmp_path):
    agent = small("rem", target_limit="auto")
    for clip, seeds in ((1.0, (0,)), (None, (0, 1))):
        out, training = tmp_path / str(clip), replace(SHORT, clip_rewards=clip, steps=1)
        found = OfflineTraining(agent, LOG, training, out=out, seeds=seeds).prepare()
        found.folder.release()
        expected = logged_values(LOG, 0.99, clip=clip).largest
        assert found.learner.agent.target_limit == read_config(out)["agent"]["target_limit"] == expected


def test_a_limit_that_follows_a_log_needs_one():
    with pytest.raises(UsageError, match="target_limit is auto, which follows from a log"):
        resolve_collection(LOG.spec, "dqn", options={"target_limit": "auto"})
    for limit in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="choose a number above zero, none, or auto"):
            small("dqn", target_limit=limit)
    with pytest.raises(UsageError, match="target_limit is 'most', not a number or auto or none"):
        small("dqn", target_limit="most")
