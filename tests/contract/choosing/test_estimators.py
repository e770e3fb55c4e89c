"""Every estimator equals its published definition: a closed form, or plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist.choosing.analysis import Actions, Analysis, Near, Supported, corrections, likely
from optimist.choosing.estimators.agreement import agreement
from optimist.choosing.evidence import Candidate, Evidence, Log, Rewards, Steps
from optimist.choosing.importance import doubtful_propensities, softened, weighted_returns
from optimist.choosing.regression import Critic, FittedQ, Own, by_log, fitted
from optimist.choosing.selecting import halved, rounds_of
from optimist.data import Dataset, Spec
from optimist.data.sampling import Sampler

STATES, GAMMA = 4, 0.6
REWARDS = Rewards(GAMMA, None)


def chain(episodes: int = 60) -> Dataset:
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
    given = (one_hot[states], np.array(actions), np.array(rewards), np.array(ends))
    return Dataset.from_arrays(*given, truncations=np.array(limits), next_observations=one_hot[nexts])


def exact_values(right: list[float]) -> np.ndarray:
    """V of a policy on the chain that goes right with these probabilities: linear equations."""
    move, pay = np.zeros((STATES, STATES + 1)), np.zeros(STATES)
    for state, share in enumerate(right):
        move[state, max(0, state - 1)] += 1 - share
        move[state, state + 1] += share
    pay[-1] = right[-1]
    return np.linalg.solve(np.eye(STATES) - GAMMA * move[:, :-1], pay)


POLICIES = ([1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 1])


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return about(chain(), len(POLICIES))


def about(data: Dataset, policies: int = 1) -> Evidence:
    """The evidence about made-up policies on a log that is both learned and held out."""
    candidates = tuple(Candidate(None, 0, seed, 0) for seed in range(policies))
    return Evidence(candidates, (Log(data, data),), REWARDS)


def analysis_of(evidence: Evidence, actions: list[Actions], updates: int) -> Analysis:
    """The analysis of candidates with these actions, in the learned and in the held-out steps."""
    analysis = Analysis(evidence, updates)
    analysis.actions = (actions, actions)
    return analysis


def batch_of(data: Dataset):
    """All transitions of a log."""
    feed = Steps([data], REWARDS).feed
    return feed.minibatch(feed.resident, np.arange(len(data)))


def states_of(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The states of a chain's log before and after each step."""
    batch = batch_of(data)
    now, after = (np.asarray(each).argmax(axis=-1) for each in (batch.observation, batch.next_observation))
    return now, after


def said(data: Dataset, policy: list[int]) -> Actions:
    return Actions(*(np.array(policy, np.int32)[states] for states in states_of(data)))


def test_fitted_q_finds_the_exact_value_of_each_policy(evidence):
    """The first column is exact. In the second, going right from state 1 is not supported: a way to the
    reward through it is worth nothing."""
    data = evidence.logs[0].held
    answers, (now, after) = [said(data, policy) for policy in POLICIES], states_of(data)
    ahead = [~((after == 1) & (each.next_action == 1)) for each in answers]
    here = [~((now == 1) & (each.action == 1)) for each in answers]
    analysis = analysis_of(evidence, answers, updates=750)
    analysis.supported = Supported(ahead, here, [None])
    found = analysis.values
    brief = analysis_of(evidence, answers, updates=250)  # halfway it has its first values
    brief.supported = analysis.supported
    assert brief.change(0) > 0.2 > 2 * abs(analysis.change(0))
    starts = now[data.offsets[:-1]]
    assert set(starts) == set(range(STATES))
    for number, policy in enumerate(POLICIES):
        np.testing.assert_allclose(found.fqe[number], exact_values(policy)[starts], atol=0.04)
    blocked = np.array([0.0, 0.0, GAMMA, 1.0])  # of always going right
    np.testing.assert_allclose(found.supported[0], blocked[starts], atol=0.04)
    np.testing.assert_allclose(found.supported[1], exact_values(POLICIES[1])[starts], atol=0.04)


def returns_by_loops(data: Dataset) -> list[float]:
    found = []
    for start, stop in zip(data.starts, data.stops, strict=True):
        total = 0.0
        for reward in reversed(data.timeline.reward[start:stop].tolist()):
            total = reward + GAMMA * total
            found.append(total)
    return found


def test_no_value_is_beyond_the_largest_return_of_the_log():
    data = a_shop()
    low, high = about(data).possible
    assert low == 0.0
    assert high == pytest.approx(max(returns_by_loops(data)))


def a_shop() -> Dataset:
    """500 visitors see items at random; one of the four is bought, in half of the cases."""
    random, rows = np.random.default_rng(0), []
    for _ in range(500):
        age, hour, spent = random.integers(18, 81), random.integers(24), 0.0
        for shown in range(1, 9):
            item = random.integers(4)
            paid = 20.0 * float(item == (2 if age < 45 else 3) and random.random() < 0.5)
            left = shown == 8 or random.random() < 0.2
            rows.append((age, hour, spent, item, paid, left))
            spent += paid
            if left:
                break
    age, hour, spent, item, paid, left = map(np.array, zip(*rows, strict=True))
    seen = np.stack([age, hour, spent], axis=1).astype(np.float32)
    return Dataset.from_arrays(seen, item, paid, left, np.zeros(len(rows), bool))


def test_fitted_q_stays_near_the_truth_on_a_small_log():
    """Without a bound by the log it credited a policy like this one with ten times what it earns."""
    learned, held = a_shop().hold_out(0.3)
    gamma = 0.99
    evidence = Evidence((Candidate(None, 0, 0, 0),), (Log(learned, held),), Rewards(gamma, None))
    answers = []
    for data in (learned, held):
        batch = batch_of(data)
        ages = (np.asarray(each)[:, 0] for each in (batch.observation, batch.next_observation))
        answers.append([Actions(*(np.where(age < 45, 2, 3).astype(np.int32) for age in ages))])
    analysis = Analysis(evidence, 4_000)
    analysis.actions = tuple(answers)
    true = sum((0.8 * gamma) ** step * 10.0 for step in range(8))
    assert 0.6 * true < analysis.values.fqe[0].mean() < 1.1 * true


def test_a_target_of_fitted_q_is_the_published_one(evidence):
    """r + discount * Q(s', pi(s')), by hand; the second column stops where the support ends."""
    spec = evidence.spec
    critic = Critic(spec, None, columns=2)
    problem = FittedQ(critic, lowest=-0.3, possible=(-10.0, 10.0))
    params, targets = (critic.init(jax.random.PRNGKey(seed)) for seed in (0, 1))
    data = evidence.logs[0].held
    step = jax.tree.map(lambda column: column[0], batch_of(data))
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
        batch = Sampler(view, 1, GAMMA, 1, None, 0, 1.0).all_rows()
        return Own(np.ones(len(batch.reward), np.int32), np.ones(len(batch.reward), bool))

    longest = max(map(len, parts))
    padded = [jax.tree.map(lambda c: np.pad(c, (0, longest - len(c))), own(part)) for part in parts]
    both = jax.tree.map(lambda *columns: jnp.stack(columns), *padded)
    together, _ = fitted(problem, Steps(parts, REWARDS, 8), np.array([0, 1]), both, updates=12)
    mine = jax.tree.map(lambda c: jnp.asarray(c)[None], own(parts[1]))
    alone, _ = fitted(problem, Steps(parts[1:], REWARDS, 8), np.array([0]), mine, updates=12)
    for joint, single in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(joint[1], single[0], atol=1e-5)
        assert joint.size == 2 * single.size and not np.allclose(joint[0], joint[1])


def test_logs_may_have_unequal_numbers_of_candidates():
    whose = np.array([2, 0, 2, 2, 0])
    table, place = by_log(whose, logs=4)
    assert table.shape == (4, 3)
    assert table.ravel()[place].tolist() == [0, 1, 2, 3, 4]  # each candidate is found again
    assert (place // 3).tolist() == whose.tolist()  # in the row of its log


def test_a_softened_policy_is_weighed_as_plain_loops_do_and_near_its_exact_value():
    """Right in every state, but as the uniform behaviour in half of the steps."""
    data = chain(1500)
    right = said(data, POLICIES[0]).action
    found = softened(data, [right], np.full(len(data), 0.5), REWARDS)
    (soft, total), episodes = (found.soft, 0.0), data.episodes
    for t in range(12):
        numerator = denominator = 0.0
        for number, episode in enumerate(episodes):
            begin, weight = data.offsets[number], 1.0
            for k in range(min(t + 1, len(episode))):
                agrees = episode.actions[k] == right[begin + k]
                weight *= ((1 - soft) * agrees + soft * 0.5) / 0.5
            if t < len(episode) or episode.terminal:  # one that was cut off is not known any more
                denominator += weight
                numerator += weight * (episode.rewards[t] if t < len(episode) else 0.0)
        total += GAMMA**t * numerator / denominator
    np.testing.assert_allclose(found.values[0, 0], total, rtol=1e-6)
    exact = exact_values([1 - soft / 2] * STATES)
    low, high = np.quantile(found.values[1:, 0], [0.025, 0.975])
    assert low < exact.mean() < high and high - low < 0.1 * exact.mean() * 2
    assert found.gains[0, 0] > 0 and 30 <= found.effective[0] < 1500


def endless(lengths: list[int], reward: float = 1.0) -> Dataset:
    """Episodes of one state that pay the same in every step and are cut off after so many."""
    count, ends = sum(lengths), np.cumsum(lengths) - 1
    state = np.ones((count, 2))
    return Dataset.from_arrays(
        state, np.arange(count) % 2, np.full(count, reward), np.zeros(count, bool),
        truncations=np.isin(np.arange(count), ends), next_observations=state, actions_count=2,
    )  # fmt: skip


def test_an_episode_that_was_cut_off_has_not_ended():
    """It counted with rewards of 0, as if the work had stopped. Known is only what was seen: 1 a step."""
    data = endless([2, 8, 4])
    values, effective = weighted_returns(data, np.ones((14, 1)), REWARDS, np.ones((1, 3)))
    np.testing.assert_allclose(values, [[sum(GAMMA**t for t in range(8))]])
    np.testing.assert_allclose(effective, [3])


def test_what_followed_a_cut_episode_is_a_fitted_value():
    """Every episode pays 1 a step for ever: 1 / (1 - gamma), however early it was cut."""
    data = endless([3, 9, 5, 7] * 10)
    (observed,) = Analysis(about(data), updates=1000).observed
    np.testing.assert_allclose(observed, np.full(40, 1 / (1 - GAMMA)), rtol=0.02)
    whole = Dataset.from_arrays(
        np.ones((4, 2)), [0, 1, 0, 1], np.ones(4), [0, 1, 0, 1], truncations=False, actions_count=2
    )
    (observed,) = Analysis(about(whole), updates=10**9).observed  # nothing is fitted
    np.testing.assert_allclose(observed, [1 + GAMMA] * 2)


def test_the_correction_of_a_policy_that_acts_as_logged_is_what_the_log_shows(evidence):
    """V(start) + sum of gamma^t (r + gamma V(s') - V(s)) is the return, whatever V is."""
    data = evidence.logs[0].held
    steps, value = data.steps(), np.random.default_rng(0).normal(size=STATES + 1)
    now, after = states_of(data)
    reward, discount = data.timeline.reward[steps], GAMMA * ~data.timeline.terminal[steps]
    surprises, logged = reward + discount * value[after] - value[now], data.timeline.action[steps]
    found = value[now[data.offsets[:-1]]] + corrections(data, GAMMA, logged, np.ones(len(data)), surprises)
    last = data.stops - 1
    rest = GAMMA ** np.diff(data.offsets) * ~data.timeline.terminal[last] * value[after[data.offsets[1:] - 1]]
    np.testing.assert_allclose(found, REWARDS.returns(data)[data.offsets[:-1]] + rest, rtol=1e-6)


def test_held_out_outcomes_correct_a_wrong_estimate():
    """Two actions that pay 1 and 0, a quarter and three quarters of the log; FQE says 5 for both."""
    random = np.random.default_rng(0)
    action = (random.random(4000) < 0.75).astype(int)
    data = Dataset.from_arrays(
        np.ones((4000, 2)), action, 1.0 - action, np.ones(4000, bool), truncations=False, actions_count=2
    )
    propensities, surprises = np.where(action == 1, 0.75, 0.25), (1.0 - action) - 5.0
    for chosen, true in ((0, 1.0), (1, 0.0)):
        found = 5.0 + corrections(data, GAMMA, np.full(4000, chosen), propensities, surprises)
        assert np.mean(found) == pytest.approx(true, abs=0.02)


def test_logged_probabilities_that_cannot_be_right_are_said():
    random, count = np.random.default_rng(0), 5000
    right = np.array([0.1, 0.3, 0.6])
    actions = random.choice(3, count, p=right)

    def note(probabilities, **more) -> str | None:
        rows = (np.ones((count, 2)), actions, np.zeros(count), np.ones(count))
        return doubtful_propensities(
            Dataset.from_arrays(*rows, truncations=False, probabilities=probabilities, **more)
        )

    assert note(right[actions]) is None
    assert "sums to 586 over the steps with action 0, which was possible in 5,000" in note(
        np.full(count, 0.9)
    )
    assert "with action" in note(right[actions] / 2)
    sometimes = np.stack([actions == 0, np.ones(count, bool), np.ones(count, bool)], axis=1)
    assert note(np.where(actions == 0, 0.9, right[actions] / 0.9), allowed_actions=sometimes) is None


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
    found = analysis_of(about(data, 2), [said(data, policy) for policy in policies], updates=200).supported
    assert found.held[0].all()
    np.testing.assert_array_equal(found.held[1], states >= 2)
    (cloned,) = found.propensities  # none were logged
    np.testing.assert_allclose(cloned, np.where(states < 2, 1.0, 0.5), atol=0.12)


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
    policies = [Actions(usual, following), Actions(*[np.ones(count, int)] * 2)]
    found = analysis_of(about(data, 2), policies, updates=400).supported
    goes_on = np.arange(count) % 10 < 9
    assert found.held[0].all() and found.learned[0][goes_on].all()
    assert not found.held[1].any() and not found.learned[1][goes_on].any()


def test_a_vector_is_supported_as_near_as_the_logged_ones():
    spec = Spec((2,), "float32", action_low=(-2.0,), action_high=(2.0,))
    logged = np.linspace(-0.2, 0.2, 200)[:, None]
    near = Near.of(spec, np.zeros((200, 1)), logged)
    actions = np.array([[0.0], [0.19], [0.25], [-1.0]])
    assert near(np.zeros((4, 1)), actions).tolist() == [True, True, False, False]


def test_halving_spends_the_budget_and_keeps_the_best_half():
    assert rounds_of(20, 100) == [(4, 2), (2, 6)]
    assert rounds_of(3, 100) == [(2, 1)]  # one episode cannot be shared equally
    assert rounds_of(20, 1) == [(1, 20)]
    assert all(sum(n * e for n, e in rounds_of(budget, 64)) <= budget for budget in range(1, 200))
    true = {7: 1.0, 3: 5.0, 9: 3.0, 1: 4.0, 8: 9.0}
    order, returns = halved([7, 3, 9, 1, 8], 20, lambda each, episodes, _: [true[each]] * episodes)
    assert order == [3, 1, 9, 7, 8]  # 8 is the best, but was not among the four that could play
    assert {each: len(found) for each, found in returns.items()} == {7: 2, 3: 8, 9: 2, 1: 8}
