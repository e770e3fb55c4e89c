"""What a scale makes of an agent, and what it leaves alone."""

from optimist import agents
from optimist.optimizers import Adam
from optimist.training.scales import SCALES


def fitted(scale, name, preset=None):
    return SCALES[scale].fitted(agents.preset(name, preset))


def test_many_heads_share_a_gradient_and_take_a_smaller_epsilon_at_the_mini_scale():
    for name in ("rem", "ensemble_dqn", "averaged_ensemble_dqn"):
        assert fitted("mini", name).optimizer == Adam(learning_rate=2.5e-4, epsilon=0.001 / 32)
    for name, preset in (("dqn", "adam"), ("qr_dqn", None)):
        own = agents.preset(name, preset).optimizer.epsilon
        assert fitted("mini", name, preset).optimizer == Adam(learning_rate=2.5e-4, epsilon=own)


def test_the_small_scale_gives_every_adam_the_smaller_epsilon():
    for name, preset in (("rem", None), ("dqn", "adam"), ("qr_dqn", None)):
        assert fitted("small", name, preset).optimizer == Adam(learning_rate=5e-4, epsilon=0.001 / 32)


def test_the_paper_scale_leaves_the_optimizer_alone():
    for name, preset in (("rem", None), ("dqn", "nature"), ("qr_dqn", None)):
        agent = agents.preset(name, preset)
        assert fitted("paper", name, preset).optimizer == agent.optimizer
        assert fitted("paper", name, preset).target_period == 2_000
