"""Deep deterministic policy gradient: a critic learns the value of actions; the actor maximises it."""

from dataclasses import dataclass

from optimist.agents._actor_critic import ActorCritic


@dataclass(frozen=True, kw_only=True)
class Ddpg(ActorCritic):
    """DDPG (Lillicrap et al. 2016, algorithm 1), with the settings of Fujimoto et al.'s BCQ code."""

    def critic_loss(self, now, target, step, key, shared_key):
        next_value = target.critics(step.next_observation, target.actor(step.next_observation)).mean()
        return ((self.target(step, next_value) - now.critics(step.observation, step.action)) ** 2).sum()

    def actor_loss(self, now, step, key):
        return -now.critics(step.observation, now.actor(step.observation)).mean()


# The BCQ authors rewrote their code in March 2020. Agarwal et al. 2020 most likely used the older one, which
# also takes 1,000 random steps before it learns; the newer one takes 25,000 (`--warm-up`).
PRESETS = {
    "2020": Ddpg(),
    "2019": Ddpg(actor_rate=1e-4, critic_decay=1e-2, late_action=True),
}
