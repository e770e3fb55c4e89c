"""The agents of vector actions: each loss against plain loops over its published equation."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist import agents
from optimist.agents._actor_critic import Bounds
from optimist.data.transition import Spec, Transition
from optimist.errors import DataError, UsageError
from optimist.networks import DenseNetwork

SPEC = Spec((3,), "float32", action_low=(-2.0, 0.0), action_high=(2.0, 1.0))  # a box that is not symmetric
BATCH, KEY = 7, jax.random.PRNGKey(3)
NAMES = ("bcq", "cloned_actor", "ddpg", "iql", "rebrac", "sac_cql", "td3", "td3_bc", "td3_rem")


def small(name: str, **changes):
    agent = agents.preset(name)
    sizes = {"vae_hidden": "6,5"} if hasattr(agent, "vae_hidden") else {}
    changes = {"network": DenseNetwork("6,5"), **sizes, **changes}
    return dataclasses.replace(agent, **changes)


def batch(count: int = BATCH) -> Transition:
    """With the next logged actions, which most agents do not read; at the third step there is none."""
    random = np.random.default_rng(0)
    low, high = np.array(SPEC.action_low), np.array(SPEC.action_high)
    return Transition(
        observation=random.normal(size=(count, 3)).astype(np.float32),
        action=random.uniform(low, high, (count, 2)).astype(np.float32),
        reward=random.normal(size=count).astype(np.float32),
        discount=np.where(random.random(count) < 0.3, 0, 0.9).astype(np.float32),
        next_observation=random.normal(size=(count, 3)).astype(np.float32),
        next_action=random.uniform(low, high, (count, 2)).astype(np.float32),
        next_logged=np.arange(count) != 2,
    )


class ByLoops:
    """Networks of plain numbers, and the equations written out one transition at a time."""

    def __init__(self, agent, params, targets):
        self.agent, self.params, self.targets = agent, *jax.tree.map(np.asarray, (params, targets))
        self.low, self.high = np.array(SPEC.action_low), np.array(SPEC.action_high)
        self.reach = (self.high - self.low) / 2

    @staticmethod
    def network(layers, *parts):
        x = [float(number) for part in parts for number in part]
        for place, layer in enumerate(layers):
            out = []
            for column in range(layer.weight.shape[1]):
                total = float(layer.bias[column])
                for row, value in enumerate(x):
                    total += value * float(layer.weight[row, column])
                out.append(total if place == len(layers) - 1 else max(total, 0.0))
            x = ByLoops.normed(out, layer) if hasattr(layer, "gain") else out
        return x

    @staticmethod
    def normed(numbers, layer):
        mean = sum(numbers) / len(numbers)
        variance = sum((number - mean) ** 2 for number in numbers) / len(numbers)
        pairs = zip(numbers, layer.gain, layer.shift, strict=True)
        return [(number - mean) / math.sqrt(variance + 1e-6) * float(g) + float(s) for number, g, s in pairs]

    def box(self, shares):
        return np.array(
            [low + (math.tanh(s) + 1) * r for low, s, r in zip(self.low, shares, self.reach, strict=True)]
        )

    def actor(self, params, observation):
        return self.box(self.network(params["actor"], observation))

    def critics(self, params, observation, action):
        count = params["critic"][0].weight.shape[0]
        single = [jax.tree.map(lambda leaf, k=k: leaf[k], params["critic"]) for k in range(count)]
        return [self.network(layers, observation, action)[0] for layers in single]

    def bettered(self, params, observation, action):
        change = np.tanh(self.network(params["actor"], observation, action))
        return np.clip(action + self.agent.perturbation * self.reach * change, self.low, self.high)

    def target(self, step, next_value):
        target, limit = step.reward + step.discount * next_value, self.agent.target_limit
        return target if limit is None else max(-limit, min(limit, target))

    def critics_error(self, step, target):
        return sum((q - target) ** 2 for q in self.critics(self.params, step.observation, step.action))

    def decoded(self, params, observation, code):
        return self.box(self.network(params["vae"]["decoder"], observation, code))

    def imagined(self, params, observation, key, count):
        codes = np.clip(np.asarray(jax.random.normal(key, (count, 4))), -0.5, 0.5)
        return [self.decoded(params, observation, code) for code in codes]


def rows(steps: Transition):
    return [jax.tree.map(lambda column, i=i: column[i], steps) for i in range(len(steps.reward))]


def keys_of(count: int):
    own, shared = jax.random.split(KEY)
    return jax.random.split(own, count), shared


def ddpg_critic(loops, step, key, shared):
    following = loops.actor(loops.targets, step.next_observation)
    target = loops.target(step, loops.critics(loops.targets, step.next_observation, following)[0])
    return (loops.critics(loops.params, step.observation, step.action)[0] - target) ** 2


def any_actor(loops, step, key):
    said = loops.critics(loops.params, step.observation, loops.actor(loops.params, step.observation))
    return -(sum(said) / len(said) if isinstance(loops.agent, agents.Td3Rem) else said[0])


def blurred(loops, step, key):
    noise = np.asarray(jax.random.normal(key, (2,)))
    blur = [max(-0.5, min(0.5, loops.agent.blur * n)) for n in noise]
    noise = [share * reach for share, reach in zip(blur, loops.reach, strict=True)]
    return np.clip(loops.actor(loops.targets, step.next_observation) + noise, loops.low, loops.high)


def td3_critic(loops, step, key, shared):
    said = loops.critics(loops.targets, step.next_observation, blurred(loops, step, key))
    target = loops.target(step, min(said))
    return loops.critics_error(step, target)


def td3_rem_critic(loops, step, key, shared):
    alpha = np.asarray(loops.agent.mixture.draw(shared, loops.agent.critics))[:, 0]
    assert alpha.sum() == pytest.approx(1)
    said = loops.critics(loops.targets, step.next_observation, blurred(loops, step, key))
    target = loops.target(step, sum(a * q for a, q in zip(alpha, said, strict=True)))
    now = loops.critics(loops.params, step.observation, step.action)
    return (sum(a * q for a, q in zip(alpha, now, strict=True)) - target) ** 2


def bcq_critic(loops, step, key, shared):
    best = -math.inf
    for action in loops.imagined(loops.params, step.next_observation, key, 10):
        action = loops.bettered(loops.targets, step.next_observation, action)
        said = loops.critics(loops.targets, step.next_observation, action)
        best = max(best, 0.75 * min(said) + 0.25 * max(said))
    target = loops.target(step, best)
    return loops.critics_error(step, target)


def bcq_actor(loops, step, key):
    (action,) = loops.imagined(loops.params, step.observation, key, 1)
    return -loops.critics(
        loops.params, step.observation, loops.bettered(loops.params, step.observation, action)
    )[0]


def bcq_vae(loops, step, key):
    said = loops.network(loops.params["vae"]["encoder"], step.observation, step.action)
    mean, deviation = said[:4], [math.exp(max(-4.0, min(15.0, s))) for s in said[4:]]
    noise = np.asarray(jax.random.normal(key, (4,)))
    code = [m + d * n for m, d, n in zip(mean, deviation, noise, strict=True)]
    action = loops.decoded(loops.params, step.observation, code)
    error = sum((a - b) ** 2 for a, b in zip(action, step.action, strict=True)) / 2
    pairs = list(zip(mean, deviation, strict=True))
    divergence = sum(-0.5 * (1 + math.log(d**2) - m**2 - d**2) for m, d in pairs) / len(pairs)
    return error + 0.5 * divergence


def cloned_actor(loops, step, key):
    said = loops.actor(loops.params, step.observation)
    return sum((a - b) ** 2 for a, b in zip(said, step.action, strict=True)) / len(said)


def td3_bc_actor(loops, step, key):
    def acted(row):
        action = loops.actor(loops.params, row.observation)
        return action, loops.critics(loops.params, row.observation, action)[0]

    size = sum(abs(acted(row)[1]) for row in loops.steps) / len(loops.steps)
    action, value = acted(step)
    distance = [(a - b) / r for a, b, r in zip(action, step.action, loops.reach, strict=True)]
    return sum(d**2 for d in distance) / len(distance) - 2.5 / size * value


def distance(loops, action, logged):
    return sum(((a - b) / r) ** 2 for a, b, r in zip(action, logged, loops.reach, strict=True))


def rebrac_critic(loops, step, key, shared):
    following = blurred(loops, step, key)
    value = min(loops.critics(loops.targets, step.next_observation, following))
    if step.next_logged:
        value -= loops.agent.critic_penalty * distance(loops, following, step.next_action)
    target = loops.target(step, value)
    return loops.critics_error(step, target)


def rebrac_actor(loops, step, key):
    def acted(row):
        action = loops.actor(loops.params, row.observation)
        return action, min(loops.critics(loops.params, row.observation, action))

    size = sum(abs(acted(row)[1]) for row in loops.steps) / len(loops.steps)
    action, value = acted(step)
    return loops.agent.actor_penalty * distance(loops, action, step.action) - value / size


def drawn(loops, observation, key):
    """An action of the stochastic actor, and the logarithm of its density over [-1, 1]."""
    said = loops.network(loops.params["actor"], observation)
    noise, action, density = np.asarray(jax.random.normal(key, (2,))), [], 1.0
    for mean, log_deviation, n in zip(said[:2], said[2:], noise, strict=True):
        deviation = math.exp(max(-20.0, min(2.0, log_deviation)))
        before = mean + deviation * float(n)
        normal = math.exp(-(float(n) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
        density *= normal / (1 - math.tanh(before) ** 2)
        action.append(before)
    return loops.box(action), math.log(density)


def sac_cql_critic(loops, step, key, shared):
    next_key, excess_key = jax.random.split(key)
    following, _ = drawn(loops, step.next_observation, next_key)
    target = loops.target(step, min(loops.critics(loops.targets, step.next_observation, following)))
    uniform_key, here_key, there_key = jax.random.split(excess_key, 3)
    uniform = np.asarray(jax.random.uniform(uniform_key, (10, 2), minval=-1, maxval=1))
    actions = [(loops.low + (share + 1) * loops.reach, math.log(0.25)) for share in uniform]
    for observation, of_all in ((step.observation, here_key), (step.next_observation, there_key)):
        actions += [drawn(loops, observation, one) for one in jax.random.split(of_all, 10)]
    total = 0.0
    for critic in (0, 1):
        value = loops.critics(loops.params, step.observation, step.action)[critic]
        shares = [
            math.exp(loops.critics(loops.params, step.observation, action)[critic] - log_density)
            for action, log_density in actions
        ]
        excess = math.log(sum(shares) / len(shares)) - value
        total += (value - target) ** 2 + 5.0 * excess
    return total


def sac_cql_temperature(loops, step, key):
    _, log_density = drawn(loops, step.observation, key)
    return -math.exp(loops.params["temperature"]) * (log_density - 2)


def sac_cql_actor(loops, step, key):
    action, log_density = drawn(loops, step.observation, key)
    value = min(loops.critics(loops.params, step.observation, action))
    return math.exp(loops.params["temperature"]) * log_density - value


def iql_state(loops, observation):
    return loops.network(loops.params["value"], observation)[0]


def iql_advantage(loops, step):
    said = loops.critics(loops.targets, step.observation, step.action)
    return min(said) - iql_state(loops, step.observation)


def iql_value(loops, step, key):
    advantage = iql_advantage(loops, step)
    return (0.7 if advantage > 0 else 0.3) * advantage**2


def iql_critic(loops, step, key, shared):
    target = loops.target(step, iql_state(loops, step.next_observation))
    return loops.critics_error(step, target)


def iql_actor(loops, step, key):
    mean = [math.tanh(x) for x in loops.network(loops.params["actor"]["mean"], step.observation)]
    logged = (step.action - loops.low) / loops.reach - 1
    density = 1.0
    for m, a, log_deviation in zip(mean, logged, loops.params["actor"]["log_deviation"], strict=True):
        deviation = math.exp(log_deviation)
        density *= math.exp(-(((a - m) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
    return -min(math.exp(3 * iql_advantage(loops, step)), 100.0) * math.log(density)


EQUATIONS = {
    ("td3_bc", "critic"): td3_critic,
    ("td3_bc", "actor"): td3_bc_actor,
    ("rebrac", "critic"): rebrac_critic,
    ("rebrac", "actor"): rebrac_actor,
    ("sac_cql", "critic"): sac_cql_critic,
    ("sac_cql", "temperature"): sac_cql_temperature,
    ("sac_cql", "actor"): sac_cql_actor,
    ("iql", "value"): iql_value,
    ("iql", "actor"): iql_actor,
    ("iql", "critic"): iql_critic,
    ("ddpg", "critic"): ddpg_critic,
    ("ddpg", "actor"): any_actor,
    ("td3", "critic"): td3_critic,
    ("td3", "actor"): any_actor,
    ("td3_rem", "critic"): td3_rem_critic,
    ("td3_rem", "actor"): any_actor,
    ("bcq", "critic"): bcq_critic,
    ("bcq", "actor"): bcq_actor,
    ("bcq", "vae"): bcq_vae,
    ("cloned_actor", "actor"): cloned_actor,
}


def odd(params: dict) -> dict:
    """Parameters that begin as zeros or ones get a value that an equation can be wrong about."""
    if "temperature" in params:
        return {**params, "temperature": jnp.array(-0.4)}
    if hasattr(params.get("critic", [None])[0], "gain"):
        return {**params, "critic": [shifted(layer) for layer in params["critic"]]}
    if "log_deviation" not in params["actor"]:
        return params
    return {**params, "actor": {**params["actor"], "log_deviation": jnp.array([0.3, -0.7])}}


def shifted(layer):
    if not hasattr(layer, "gain"):
        return layer
    ramp = jnp.linspace(-0.3, 0.8, layer.gain.shape[-1])[None]
    return layer._replace(gain=layer.gain + ramp, shift=layer.shift - 2 * ramp)


@pytest.mark.parametrize(("name", "part"), EQUATIONS, ids=lambda value: value)
def test_a_loss_is_its_papers_equation(name, part):
    agent, steps = small(name), batch()
    params, targets = (odd(agent.init(jax.random.PRNGKey(seed), SPEC)) for seed in (1, 2))
    keys, shared = keys_of(BATCH)
    more = (shared,) if part == "critic" else ()
    changes = [{}, {"target_limit": 0.3}] if part == "critic" else [{}]  # only critics have targets
    changes += [{"blur": 3.0}] if (name, part) == ("td3", "critic") else []  # beyond its limit and the box
    for limited in (small(name, **change) for change in changes):
        loops = ByLoops(limited, params, targets)
        loops.steps = rows(steps)
        expected = [
            EQUATIONS[name, part](loops, *each, *more) for each in zip(loops.steps, keys, strict=True)
        ]
        (objective,) = [each for each in limited.objectives(SPEC) if each.name == part]
        found = objective.loss(params, targets, jax.tree.map(jax.numpy.asarray, steps), KEY)
        assert float(found) == pytest.approx(sum(expected) / BATCH, rel=2e-5)


def test_every_objective_has_its_equation_written_in_loops():
    said = {(name, each.name) for name in NAMES for each in agents.preset(name).objectives(SPEC)}
    assert said == set(EQUATIONS)


UNIT = Spec((3,), "float32", action_low=(-1.0, -1.0), action_high=(1.0, 1.0))
MILLIGRAMS_AND_VOLTS = Spec((3,), "float32", action_low=(280.0, -0.01), action_high=(680.0, 0.01))


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_of_the_actions_changes_no_loss(name):
    """Critics that read doses of hundreds beside standardised observations do not learn."""
    agent = small(name)
    params, targets = (agent.init(jax.random.PRNGKey(seed), UNIT) for seed in (1, 2))
    shares = [np.clip(each, -1, 1) for each in (batch().action, batch().next_action)]

    def losses(spec):
        action, next_action = (jax.vmap(Bounds.of(spec).scaled)(each) for each in shares)
        steps = jax.tree.map(jnp.asarray, batch()._replace(action=action, next_action=next_action))
        return [float(each.loss(params, targets, steps, KEY)) for each in agent.objectives(spec)]

    np.testing.assert_allclose(losses(MILLIGRAMS_AND_VOLTS), losses(UNIT), rtol=1e-4, atol=1e-5)


def test_the_soft_maximum_of_cql_is_the_integral_over_all_actions():
    """For one action in [-1, 1] and the values 3 a, the integral of exp(3 a) is 2 sinh(3) / 3."""
    spec = Spec((3,), "float32", action_low=(-1.0,), action_high=(1.0,))
    agent = small("sac_cql", samples=20_000)
    step = rows(batch()._replace(action=batch().action[:, :1]))[0]
    actor = agent.stochastic(spec, agent.init(KEY, spec))
    found = agent.soft_maximum(actor, lambda observation, action: 3 * action, step, KEY)
    assert float(found[0]) == pytest.approx(math.log(2 * math.sinh(3) / 3), abs=0.02)


def test_td3_delays_its_actor_and_its_targets():
    critic, actor = agents.Td3().objectives(SPEC)
    assert (critic.period, actor.period, agents.Td3().target_period) == (1, 2, 2)


def test_bcq_plays_the_candidate_that_its_first_critic_likes_best():
    agent = small("bcq", candidates_at_play=12)
    params = agent.init(KEY, SPEC)
    networks, observation = agent.networks(SPEC, params), batch().observation[0]
    imagined = networks.vae.imagine(observation, KEY, 12)
    better = [networks.actor(observation, action) for action in imagined]
    values = [float(networks.critics(observation, action)[0]) for action in better]
    chosen = agent.action(SPEC, params, observation, KEY)
    np.testing.assert_allclose(chosen, better[int(np.argmax(values))], rtol=1e-6)
    reach = 0.05 * np.asarray(Bounds.of(SPEC).reach)
    assert all((np.abs(b - i) <= reach + 1e-6).all() for b, i in zip(better, imagined, strict=True))


@pytest.mark.parametrize("name", ["bcq", "iql", "sac_cql", "td3"])
def test_exploring_is_the_policy_with_noise_of_that_size(name):
    agent = small(name, noise=0.1)
    params, observation = agent.init(KEY, SPEC), batch().observation[0]
    keys = jax.random.split(KEY, 400)
    noisy = jax.vmap(lambda key: agent.online_action(SPEC, params, observation, key, key))(keys)
    noise = np.asarray(noisy - jax.vmap(lambda key: agent.action(SPEC, params, observation, key))(keys))
    assert np.abs(noise.std(axis=0) / (0.1 * np.asarray(Bounds.of(SPEC).reach)) - 1).max() < 0.15


@pytest.mark.parametrize("name", NAMES)
def test_other_data_is_refused_in_one_line(name):
    agent = agents.preset(name)
    said = "chooses action vectors; this data has 3 discrete actions: use an agent such as "
    with pytest.raises(DataError, match=said + agent.discrete_peer):
        agent.check(Spec((3,), "float32", actions=3))
    with pytest.raises(DataError, match=r"reads vectors; these observations are \(8, 8, 1\)"):
        agent.check(Spec((8, 8, 1), "uint8", action_low=(-1.0,), action_high=(1.0,)))


def test_decay_and_rates_reach_only_their_own_networks():
    """With gradients of zero a critic's weights still decay; an actor's stay."""
    agent = small("ddpg", actor_rate=0.5, critic_decay=0.1)
    for group, moves in (("critic", True), ("actor", False)):
        weight = jnp.ones(3)
        transform = agent.optimizer_of(group).transform()
        update, _ = transform.update(jnp.zeros(3), transform.init(weight), weight)
        assert bool((update < 0).all()) == moves
    assert agent.optimizer_of("actor").learning_rate == 0.5


def test_the_candidates_of_bcq_and_its_noise_are_drawn_by_keys_of_their_own():
    """With one key for both, the noise would repeat the codes of the candidates."""
    agent = small("bcq", noise=1e-3, candidates_at_play=1)
    params, observation = agent.init(KEY, SPEC), batch().observation[0]
    keys = jax.random.split(KEY, 300)
    noisy = jax.vmap(lambda key: agent.online_action(SPEC, params, observation, key, key))(keys)
    drawn = jax.vmap(lambda key: jax.random.normal(key, (2 * len(SPEC.action_low),)))(keys)
    plain = jax.vmap(lambda key: agent.action(SPEC, params, observation, jax.random.split(key)[0]))(keys)
    noise = np.asarray(noisy - plain)
    correlations = np.corrcoef(noise.T, np.asarray(drawn).T)[: noise.shape[1], noise.shape[1] :]
    assert noise.std() > 0 and np.abs(correlations).max() < 0.25


def on_torso(tree):
    """The parameters of networks without a torso, as networks on a torso without parameters have them."""
    if isinstance(tree, dict):
        return {name: on_torso(part) for name, part in tree.items()}
    return {"torso": [], "layers": tree} if isinstance(tree, list) else tree


@pytest.mark.parametrize("name", NAMES)
def test_every_network_reads_the_features_of_its_torso(name):
    """The features of `linear` are the observation, so the losses are those of the same layers alone."""
    plain, torsoed = small(name), small(name, network=DenseNetwork("6,5", torso="linear"))
    params, targets = (plain.init(key, SPEC) for key in jax.random.split(KEY))
    assert jax.tree.structure(torsoed.init(KEY, SPEC)) == jax.tree.structure(on_torso(params))
    for alone, below in zip(plain.objectives(SPEC), torsoed.objectives(SPEC), strict=True):
        expected = alone.loss(params, targets, batch(), KEY)
        found = below.loss(on_torso(params), on_torso(targets), batch(), KEY)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_torso_has_parameters_that_learn():
    agent = small("td3", network=DenseNetwork("6,5", torso="mlp"))
    params = agent.init(KEY, SPEC)
    assert params["critic"]["torso"][0].weight.shape == (2, 3, 64)  # a torso for each of two critics
    assert params["actor"]["layers"][0].weight.shape == (64, 6)
    for objective in agent.objectives(SPEC):
        gradient = jax.jit(jax.grad(objective.loss))(params, params, batch(), KEY)
        assert jnp.abs(gradient[objective.name]["torso"][0].weight).max() > 0


def test_a_torso_for_images_is_refused():
    with pytest.raises(UsageError, match='"nature" network needs images'):
        small("td3", network=DenseNetwork(torso="nature")).check(SPEC)
    assert DenseNetwork(torso="auto") == DenseNetwork(torso="none") == DenseNetwork()
