"""Deep deterministic policy gradient: a critic learns what the actor is worth, the actor climbs it."""

from dataclasses import dataclass

from optimist.actor_critic import ActorCritic
from optimist.losses import td_error


@dataclass(frozen=True, kw_only=True)
class Ddpg(ActorCritic):
    """DDPG (Lillicrap et al. 2016, algorithm 1), with the settings of Fujimoto et al. 2019."""

    def critic_loss(self, now, target, step, key, shared_key):
        next_value = target.critics(step.next_observation, target.actor(step.next_observation)).mean()
        return (td_error(step, now.critics(step.observation, step.action), next_value) ** 2).sum()

    def actor_loss(self, now, step, key):
        return -now.critics(step.observation, now.actor(step.observation)).mean()
