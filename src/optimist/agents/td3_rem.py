"""TD3 with REM: trains a random mixture of several critics in place of the smaller of two."""

from dataclasses import dataclass

from optimist.agents.td3 import Td3
from optimist.equations.mixtures import Mixture


@dataclass(frozen=True, kw_only=True)
class Td3Rem(Td3):
    """REM (Agarwal et al. 2020, section 4.2) in an actor-critic; section 7 names this as future work."""

    critics: int = 4
    mixture: Mixture = Mixture()

    def critic_loss(self, now, target, step, key, shared_key):
        alpha = self.mixture.draw(shared_key, self.critics)
        next_value = target.critics(step.next_observation, self.next_action(target, step, key)) @ alpha
        value = now.critics(step.observation, step.action) @ alpha
        return ((self.target(step, next_value) - value) ** 2).mean()

    def actor_loss(self, now, step, key):
        return -now.critics(step.observation, now.actor(step.observation)).mean()
