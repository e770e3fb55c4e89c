"""Random Ensemble Mixture: trains a random mixture of heads towards the same mixture of target heads."""

from dataclasses import dataclass

from optimist.agents._table_agent import ManyHeads
from optimist.equations.mixtures import Mixture
from optimist.equations.optimizers import Adam


@dataclass(frozen=True, kw_only=True)
class Rem(ManyHeads):
    """REM (Agarwal et al. 2020, section 4.2): one mixture per minibatch, the same for both networks."""

    mixture: Mixture = Mixture()

    def loss(self, q, q_target, step, key):
        alpha = self.mixture.draw(key, self.columns)
        next_value = (q_target(step.next_observation, step.next_allowed) @ alpha).max(axis=0)
        error = self.target(step, next_value) - (q(step.observation) @ alpha)[step.action]
        return self.error_loss(error).mean()


PRESETS = {
    "paper": Rem(),  # offline, 200 heads on one torso
    # Ours: a head gets 1/200 of the gradient of DQN's, and with 1/200 of its epsilon it takes its steps.
    "matched-epsilon": Rem(optimizer=Adam(head_epsilon=Adam().epsilon / 200)),
    "networks-4": Rem(columns=4, networks=4),  # offline, the separate networks of the paper's appendix
    "networks-16": Rem(columns=16, networks=16),
    # Section 5.3: 4 networks, epsilon-greedy on one mixture per episode, and a smaller epsilon of Adam.
    "online": Rem(columns=4, networks=4, explore="uniform", optimizer=Adam(epsilon=0.001 / 32)),
}
