"""What a recipe changes in an agent, and what it leaves as it is."""

from optimist import agents
from optimist.equations.optimizers import Adam
from optimist.training.recipes import RECIPES


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
