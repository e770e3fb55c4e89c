"""Every estimator equals its published definition: a closed form, or plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist.data import Dataset
from optimist.training.selection.agreement import agreement
from optimist.training.selection.bvft import RESOLUTIONS, tournament
from optimist.training.selection.decisions import Answers
from optimist.training.selection.drift import complete_steps, overestimation
from optimist.training.selection.evidence import Evidence, Log, Rewards, Steps
from optimist.training.selection.fitted_q import FittedQ, Own, policy_values
from optimist.training.selection.halving import halved, rounds_of
from optimist.training.selection.importance import FEWEST, weighted_return
from optimist.training.selection.regression import Critic, by_log, fitted
from optimist.training.selection.supervised_bellman import bellman_errors
from optimist.training.selection.support import Near, likely, support

STATES, GAMMA = 4, 0.6
REWARDS = Rewards(GAMMA, None)


def chain(episodes: int = 60, **more) -> Dataset:
    """A chain of four states. Action 1 goes right, action 0 left; beyond the right end the game is over and
    pays 1. Behaviour is uniform."""
    random = np.random.default_rng(0)
    states, actions, rewards, ends, nexts, limits = ([] for _ in range(6))
    for _ in range(episodes):
        state = int(random.integers(STATES))
        for step in range(12):
            action = int(random.integers(2))
            after = max(0, state - 1) if action == 0 else state + 1
            over = after == STATES
            states.append(state), actions.append(action), rewards.append(float(over)), ends.append(over)
            nexts.append(min(after, STATES - 1)), limits.append(step == 11 and not over)
            state = after
            if over:
                break
    one_hot = np.eye(STATES, dtype=np.float32)
    return Dataset.from_arrays(
        one_hot[states],
        np.array(actions),
        np.array(rewards),
        np.array(ends),
        truncations=np.array(limits),
        next_observations=one_hot[nexts],
        **more,
    )


def exact_values(policy: list[int]) -> np.ndarray:
    """V of a policy on the chain, by solving the linear equations."""
    move, pay = np.zeros((STATES, STATES)), np.zeros(STATES)
    for state, action in enumerate(policy):
        after = max(0, state - 1) if action == 0 else state + 1
        if after == STATES:
            pay[state] = 1.0
        else:
            move[state, after] = 1.0
    return np.linalg.solve(np.eye(STATES) - GAMMA * move, pay)


POLICIES = ([1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 1])


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    data = chain()
    return Evidence((Log(data, data),), np.zeros(len(POLICIES), int), REWARDS, ())


def state_of(observations) -> np.ndarray:
    return np.asarray(observations).argmax(axis=-1)


def said(data: Dataset, policy: list[int], values=None) -> Answers:
    """A policy's answers, and its own values where `values` are (states, actions)."""
    batch = Steps([data], REWARDS).feed.minibatch(Steps([data], REWARDS).feed.resident, np.arange(len(data)))
    now, after = state_of(batch.observation), state_of(batch.next_observation)
    rule = np.array(policy, np.int32)
    own = np.full((STATES, 2), np.nan) if values is None else values
    best = own.max(axis=1)
    return Answers(rule[now], rule[after], best[now], best[after], own[now, np.asarray(batch.action)])


def test_fitted_q_finds_the_exact_value_of_each_policy(evidence):
    """The first column is exact. In the second, going right from state 1 is not supported: a way to the
    reward through it is worth nothing."""
    data = evidence.logs[0].held
    answers, steps = [said(data, policy) for policy in POLICIES], Steps([data], REWARDS)
    batch = steps.feed.minibatch(steps.feed.resident, np.arange(len(data)))
    now, after = state_of(batch.observation), state_of(batch.next_observation)
    ahead = [~((after == 1) & (each.next_action == 1)) for each in answers]
    here = [~((now == 1) & (each.action == 1)) for each in answers]
    found = policy_values(evidence, answers, answers, ahead, here, steps, updates=750)
    starts = np.array([state_of(episode.observations[:1])[0] for episode in data.episodes])
    assert set(starts) == set(range(STATES))
    for number, policy in enumerate(POLICIES):
        np.testing.assert_allclose(found.fqe[number], exact_values(policy)[starts], atol=0.04)
    blocked = np.array([0.0, 0.0, GAMMA, 1.0])  # of always going right
    np.testing.assert_allclose(found.supported[0], blocked[starts], atol=0.04)
    np.testing.assert_allclose(found.supported[1], exact_values(POLICIES[1])[starts], atol=0.04)


def test_a_target_of_fitted_q_is_the_published_one(evidence):
    """r + discount * Q(s', pi(s')), by hand; the second column stops where the support ends."""
    spec = evidence.spec
    critic = Critic(spec, None, columns=2)
    problem = FittedQ(critic, lowest=-0.3, possible=(-10.0, 10.0))
    params, targets = (critic.init(jax.random.PRNGKey(seed)) for seed in (0, 1))
    data = evidence.logs[0].held
    step = jax.tree.map(
        lambda c: c[0],
        Steps([data], REWARDS).feed.minibatch(Steps([data], REWARDS).feed.resident, np.arange(1)),
    )
    for supported in (True, False):
        loss = problem.loss(params, targets, step, Own(jnp.int32(1), jnp.array(supported)))
        after = critic(targets, step.next_observation, 1)
        now = critic(params, step.observation, step.action)
        plain = step.reward + step.discount * after[0]
        careful = step.reward + step.discount * (after[1] if supported else -0.3)
        np.testing.assert_allclose(loss, (plain - now[0]) ** 2 + (careful - now[1]) ** 2, rtol=1e-5)


def test_candidates_with_logs_of_their_own_get_what_each_gets_alone():
    """Two logs in one program: each network reads its own log's minibatches."""
    data = chain(20)
    parts = data.hold_out(0.4)
    critic = Critic(data.spec, None, columns=2)
    problem = FittedQ(critic, 0.0, (-9.0, 9.0))

    def own(view):
        batch = Steps([view], REWARDS).samplers[0].all_rows()
        return Own(np.ones(len(batch.reward), np.int32), np.ones(len(batch.reward), bool))

    longest = max(map(len, parts))
    padded = [jax.tree.map(lambda c: np.pad(c, (0, longest - len(c))), own(part)) for part in parts]
    both = jax.tree.map(lambda *columns: jnp.stack(columns), *padded)
    together = fitted(problem, Steps(parts, REWARDS, 8), np.array([0, 1]), both, updates=12)
    mine = jax.tree.map(lambda c: jnp.asarray(c)[None], own(parts[1]))
    alone = fitted(problem, Steps(parts[1:], REWARDS, 8), np.array([0]), mine, updates=12)
    for joint, single in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(joint[1], single[0], atol=1e-5)
        assert joint.size == 2 * single.size and not np.allclose(joint[0], joint[1])


def test_logs_may_have_unequal_numbers_of_candidates():
    whose = np.array([2, 0, 2, 2, 0])
    table, place = by_log(whose, logs=4)
    assert table.shape == (4, 3)
    assert table.ravel()[place].tolist() == [0, 1, 2, 3, 4]  # each candidate is found again
    assert (place // 3).tolist() == whose.tolist()  # in the row of its log


def test_the_bellman_error_of_the_true_values_is_none(evidence):
    """The best policy's Q has no Bellman error; Q plus noise has the noise's."""
    data = evidence.logs[0].held
    best = exact_values(POLICIES[0])
    right = np.array(
        [[GAMMA * best[max(0, s - 1)], 1.0 if s == 3 else GAMMA * best[s + 1]] for s in range(4)]
    )
    wrong = right + np.array([[0.5, -0.5], [-0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])
    answers = [said(data, POLICIES[0], values) for values in (right, wrong, None)]
    rows = Steps([data], REWARDS).samplers[0].all_rows()
    rewards = [(rows.reward, rows.discount)] * 3
    steps = Steps([data], REWARDS)
    errors = bellman_errors(evidence, answers, answers, steps, rewards, [1.0, 2.0, 1.0], updates=500)
    target = rows.reward + rows.discount * answers[1].next_estimate
    plain = np.sqrt(np.mean((answers[1].logged_value - target) ** 2))  # the chain is deterministic
    assert errors[0] < 0.04
    np.testing.assert_allclose(errors[1], plain / 2.0, rtol=0.1)
    assert np.isnan(errors[2])


def test_the_tournament_is_the_one_of_plain_loops():
    random = np.random.default_rng(0)
    values = [random.normal(size=40) for _ in range(3)]
    targets = [value + 0.3 * random.normal(size=40) for value in values]
    low, high = np.min(values), np.max(values)
    expected = []
    for i in range(3):
        by_resolution = []
        for resolution in RESOLUTIONS:
            width, losses = resolution * (high - low), []
            for j in range(3):
                total = 0.0
                for n in range(40):
                    cell = [
                        m
                        for m in range(40)
                        if all(
                            int((values[k][m] - low) / width) == int((values[k][n] - low) / width)
                            for k in (i, j)
                        )
                    ]
                    total += (values[i][n] - np.mean([targets[i][m] for m in cell])) ** 2
                losses.append(np.sqrt(total / 40))
            by_resolution.append(max(losses))
        expected.append(min(by_resolution))
    nothing = np.full(40, np.nan)
    found = tournament([*values, nothing], [*targets, nothing])
    np.testing.assert_allclose(found[:3], expected)
    assert np.isnan(found[3])


def test_importance_sampling_is_the_one_of_plain_loops():
    data = chain(400, probabilities=np.full(len(chain(400)), 0.5))
    chosen = said(data, POLICIES[0]).action
    total, episodes = 0.0, data.episodes
    for t in range(12):
        numerator = denominator = 0.0
        for number, episode in enumerate(episodes):
            begin = data.offsets[number]
            lasted = min(t + 1, len(episode))
            same = all(episode.actions[k] == chosen[begin + k] for k in range(lasted))
            weight = same / 0.5**lasted
            denominator += weight
            numerator += weight * (episode.rewards[t] if t < len(episode) else 0.0)
        total += GAMMA**t * numerator / denominator
    np.testing.assert_allclose(weighted_return(data, chosen, REWARDS), total, rtol=1e-6)
    np.testing.assert_allclose(total, exact_values(POLICIES[0]).mean(), atol=0.1)


def test_too_few_matching_episodes_give_no_estimate():
    data = chain(FEWEST - 1, probabilities=np.full(len(chain(FEWEST - 1)), 0.5))
    assert np.isnan(weighted_return(data, said(data, POLICIES[0]).action, REWARDS))
    assert np.isnan(weighted_return(chain(50), said(chain(50), POLICIES[0]).action, REWARDS))


def test_returns_to_go_and_overestimation():
    data = Dataset.from_arrays(
        np.zeros((5, 2)), np.zeros(5, int), [1.0, 5.0, 1.0, 1.0, 1.0], [0, 1, 0, 0, 0],
        truncations=[0, 0, 0, 0, 1], next_observations=np.zeros((5, 2)), actions_count=2,
    )  # fmt: skip
    returns = Rewards(0.5, 2.0).returns(data)
    np.testing.assert_allclose(returns, [2.0, 2.0, 1.75, 1.5, 1.0])
    assert complete_steps(data, 0.5).tolist() == [True, True, False, False, False]
    assert complete_steps(data, 0.4).tolist() == [True, True, True, False, False]
    complete = complete_steps(data, 0.5)
    known, unknown = np.zeros(5), np.full(5, np.nan)
    assert overestimation(np.array([3.0, 4.0, 99, 99, 99]), returns, complete, known) == 1.5
    assert np.isnan(overestimation(np.ones(5), returns, complete, unknown))


def test_agreement_is_between_the_members_of_a_group():
    actions = [np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]), np.array([1, 1, 1, 1])]
    found = agreement(actions, ["a", "a", "b"], None)
    np.testing.assert_allclose(found, [0.75, 0.75, np.nan])
    vectors = [np.array([[0.0, 2.0]]), np.array([[1.0, 1.0]])]
    np.testing.assert_allclose(agreement(vectors, ["a", "a"], np.array([1.0, 2.0])), [0.25, 0.25])


def test_an_action_is_supported_from_three_tenths_of_the_likeliest_on():
    logits = np.log(np.array([[0.7, 0.22, 0.08], [0.7, 0.2, 0.1]]))
    assert likely(logits, np.array([1, 1])).tolist() == [True, False]
    assert likely(logits, np.array([0, 2])).tolist() == [True, False]


def test_the_behaviour_is_cloned_and_the_candidates_are_compared_with_it():
    """The log goes right in states 0 and 1, and anywhere in 2 and 3."""
    random = np.random.default_rng(0)
    states = random.integers(STATES, size=600)
    actions = np.where(states < 2, 1, random.integers(2, size=600))
    data = Dataset.from_arrays(
        np.eye(STATES)[states], actions, np.zeros(600), np.ones(600, bool), truncations=False
    )
    policies = ([1, 1, 1, 1], [0, 0, 0, 0])
    found = support(
        Evidence((Log(data, data),), np.zeros(2, int), REWARDS, ()),
        [said(data, policy) for policy in policies],
        [said(data, policy) for policy in policies],
        Steps([data], REWARDS),
        Steps([data], REWARDS),
        updates=200,
    )
    assert found.held[0].all()
    np.testing.assert_array_equal(found.held[1], states >= 2)


def test_only_allowed_actions_are_compared_with_the_behaviour():
    """Action 2 is allowed in a tenth of the steps, where 0 is not, and then the log takes it."""
    random, count = np.random.default_rng(0), 2000
    rare, odd = random.random(count) < 0.1, random.random(count) < 0.1
    usual = np.where(rare, 2, 0)
    data = Dataset.from_arrays(
        np.eye(2)[np.arange(count) % 2], np.where(odd, 1, usual), np.zeros(count), np.arange(count) % 10 == 9,
        truncations=False, allowed_actions=np.stack([~rare, np.ones(count, bool), rare], axis=1),
    )  # fmt: skip
    following = np.append(usual[1:], 0)
    policies = [Answers(usual, following, *[np.zeros(count)] * 3), Answers(*[np.ones(count, int)] * 5)]
    found = support(
        Evidence((Log(data, data),), np.zeros(2, int), REWARDS, ()),
        policies,
        policies,
        Steps([data], REWARDS),
        Steps([data], REWARDS),
        updates=400,
    )
    goes_on = np.arange(count) % 10 < 9
    assert found.held[0].all() and found.learned[0][goes_on].all()
    assert not found.held[1].any() and not found.learned[1][goes_on].any()


def test_a_vector_is_supported_as_near_as_the_logged_ones():
    data = Dataset.from_arrays(
        np.zeros((4, 2)),
        np.zeros((4, 1)),
        np.zeros(4),
        np.ones(4, bool),
        action_low=[-2.0],
        action_high=[2.0],
    )
    logged = np.linspace(-0.2, 0.2, 200)[:, None]
    near = Near.of(data.spec, np.zeros((200, 1)), logged)
    actions = np.array([[0.0], [0.19], [0.25], [-1.0]])
    assert near(np.zeros((4, 1)), actions).tolist() == [True, True, False, False]


def test_halving_spends_the_budget_and_keeps_the_best_half():
    assert rounds_of(20, 100) == [(4, 2), (2, 5)]
    assert rounds_of(3, 100) == [(2, 1)]
    assert rounds_of(20, 1) == [(1, 20)]
    assert all(sum(n * e for n, e in rounds_of(budget, 64)) <= budget for budget in range(1, 200))
    true = {7: 1.0, 3: 5.0, 9: 3.0, 1: 4.0, 8: 9.0}
    order, returns = halved([7, 3, 9, 1, 8], 20, lambda each, episodes, _: [true[each]] * episodes)
    assert order == [3, 1, 9, 7, 8]  # 8 is the best, but was not among the four that could play
    assert {each: len(found) for each, found in returns.items()} == {7: 2, 3: 7, 9: 2, 1: 7}
