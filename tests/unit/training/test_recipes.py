"""What a recipe changes in an agent, and what it leaves as it is."""

import sys

import pytest

from optimist import agents
from optimist.data import Spec
from optimist.equations.optimizers import Adam, RmsProp
from optimist.training import resolve
from optimist.training.resolve import RECIPES, resolve_collection, resolve_training


def fitted(recipe, name, preset=None):
    return RECIPES[recipe].fitted(agents.preset(name, preset))


def test_the_mini_recipe_keeps_the_papers_epsilon_of_every_agent():
    """A tenth of it for agents with many heads once denied the paper's main claim."""
    for name in agents.available():
        for preset, agent in agents.presets(name).items():
            assert fitted("mini", name, preset).optimizer.epsilon == agent.optimizer.epsilon
    assert fitted("mini", "rem").optimizer == Adam(learning_rate=2.5e-4, epsilon=0.01 / 32)
    assert fitted("mini", "dqn", "nature").optimizer.learning_rate == 2.5e-4


def test_the_small_recipe_gives_every_adam_the_smaller_epsilon():
    for name, preset in (("rem", None), ("dqn", "adam"), ("qr_dqn", None)):
        assert fitted("small", name, preset).optimizer == Adam(learning_rate=5e-4, epsilon=0.001 / 32)


def test_the_paper_recipe_leaves_the_optimizer_alone():
    for name, preset in (("rem", None), ("dqn", "nature"), ("qr_dqn", None)):
        agent = agents.preset(name, preset)
        assert fitted("paper", name, preset).optimizer == agent.optimizer
        assert fitted("paper", name, preset).target_period == 2_000


def test_an_agent_that_plays_has_its_own_numbers_where_it_reads_vectors():
    """In 50,000 steps CartPole was learned to 44 with the Huber limit of 1, and to 399 with 100."""
    cart = Spec((4,), "float32", actions=2)
    played, trained = resolve_collection(cart, "dqn"), resolve_training(cart, "dqn").agent
    assert (played.agent.huber_limit, played.agent.target_period) == (100.0, 50)
    assert played.agent.optimizer == Adam(learning_rate=2e-3, epsilon=1e-8)
    nature = resolve_collection(cart, "dqn", preset="nature").agent
    assert nature.optimizer == RmsProp(learning_rate=2e-3)  # what is named is taken
    assert (played.settings.steps, played.settings.update_period, played.settings.batch) == (50_000, 2, 64)
    assert (trained.target_rate, trained.double, trained.target_limit) == (0.005, True, "auto")
    assert (played.agent.target_rate, played.agent.double, played.agent.target_limit) == (1.0, False, None)
    given = resolve_collection(cart, "dqn", preset="adam", options={"huber_limit": 1.0}).agent
    assert (given.huber_limit, given.optimizer) == (1.0, Adam(learning_rate=2e-3, epsilon=1e-8))
    assert resolve_collection(cart, "dqn", recipe="small").agent == fitted("small", "dqn")


OWN = """
from dataclasses import dataclass

import jax

from optimist.agents import ManyHeads
from optimist.agents.dqn import Dqn
from optimist.agents.td3 import Td3
from optimist.equations.optimizers import Adam, Transform


@dataclass(frozen=True, kw_only=True)
class Hasty(Dqn):
    target_period: int = 5


PRESETS = {"slow": Hasty(optimizer=Adam(learning_rate=1e-6)), "usual": Hasty(target_period=2_000)}


@dataclass(frozen=True, kw_only=True)
class Plain(Dqn):
    pass


PRESETS["as-it-is"] = Plain(target_period=2_000)  # nobody could know that it was written


@dataclass(frozen=True)
class Sgd:
    rate: float = 0.1

    def transform(self):
        return Transform(lambda params: (), self._update)

    def _update(self, gradients, slots, params):
        return jax.tree.map(lambda g: -self.rate * g, gradients), slots


@dataclass(frozen=True, kw_only=True)
class Descending(Dqn):
    optimizer: Sgd = Sgd()
"""


@pytest.fixture
def own_agents(tmp_path, monkeypatch):
    (tmp_path / "own_agents.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_agents"
    sys.modules.pop("own_agents", None)
    resolve._tell.cache_clear()


def test_a_number_of_ones_own_that_the_recipe_replaces_is_said_once(own_agents, caplog):
    """A class with target_period 5 learned with 250 without a word."""
    for _ in range(2):
        resolve_training(None, "own_agents:Hasty", preset="slow", recipe="small")
    assert caplog.messages == [
        f"own_agents:Hasty: the recipe has {name} in place of {own}; to keep yours, give it as an option"
        for name, own in (
            ("target_period 250", "5"),
            ("optimizer.learning_rate 0.0005", "1e-06"),
            ("optimizer.epsilon 3.125e-05", "0.0003125"),
        )
    ]


def test_the_packages_number_in_a_preset_is_ones_own_where_the_class_has_another(own_agents, caplog):
    resolve_training(None, "own_agents:Hasty", preset="usual", recipe="small")
    assert caplog.messages == [
        "own_agents:Hasty: the recipe has target_period 250 in place of 2000; to keep yours, give it as an "
        "option"
    ]


def test_a_number_that_is_the_packages_or_an_options_is_not_said(own_agents, caplog):
    given = {"target_period": 5, "optimizer": {"learning_rate": 1e-6, "epsilon": 0.5}}
    resolve_training(None, "own_agents:Hasty", preset="slow", recipe="small", options=given)
    resolve_training(None, "own_agents:Plain", recipe="small")
    resolve_training(None, "own_agents:Plain", preset="as-it-is", recipe="small")
    resolve_training(None, "rem", preset="online", recipe="small")
    assert caplog.messages == []


def test_a_recipe_leaves_the_numbers_of_an_actor_alone():
    """A target that moves by 0.005 of the way every 250 steps, as `small` had it, nearly stands still."""
    for name in ("td3", "iql", "bcq", "sac_cql"):
        for recipe in RECIPES:
            assert fitted(recipe, name) == agents.preset(name)


def test_an_optimizer_of_ones_own_is_kept_and_read_back(own_agents):
    found = resolve_training(None, "own_agents:Descending", recipe="small", options={"optimizer.rate": 0.2})
    description = agents.described(found.agent)
    assert description["optimizer"] == {"name": "sgd", "rate": 0.2}
    assert agents.from_description(description).optimizer.rate == 0.2
    assert resolve_training(None, "own_agents:Descending", recipe="paper").agent.optimizer.rate == 0.1
