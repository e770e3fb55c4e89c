"""How trained parameters play: one compiled program for all seeds and lanes."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.training.learner import Learner


@partial(jax.jit, static_argnames="learner")
def act(learner: Learner, params: dict, observations, epsilon, key, turn):
    """Epsilon-greedy actions of every seed in every lane, (S, L, ...) -> (S, L, ...).

    `turn` numbers the calls: each folds it into the one key, so that acting keeps no state.
    """
    keys = jax.random.split(jax.random.fold_in(key, turn), observations.shape[:2])

    def choose(params, observation, key):
        greedy = learner.agent.action(learner.spec, params, observation)
        return explore(learner.spec, greedy, epsilon, key)

    lanes = jax.vmap(choose, in_axes=(None, 0, 0))
    return jax.vmap(lanes)(params, observations, keys)


def explore(spec: Spec, greedy, epsilon, key) -> Any:
    """Any action at all with probability epsilon, the greedy one included."""
    if not spec.discrete:
        return greedy
    gamble_key, action_key = jax.random.split(key)
    anything = jax.random.randint(action_key, (), 0, spec.actions, greedy.dtype)
    return jnp.where(jax.random.uniform(gamble_key) < epsilon, anything, greedy)


class Policy:
    """A trained agent as a function: observation -> action, for one observation or a batch of them."""

    def __init__(self, learner: Learner, params: dict):
        self.learner, self.params = learner, params
        self._greedy = jax.jit(partial(learner.agent.action, learner.spec))

    def __call__(self, observation):
        observation, single = jnp.asarray(observation), self.learner.spec.observation_shape
        if observation.shape[-len(single) :] != single or observation.ndim > len(single) + 1:
            raise UsageError(f"observations of {observation.shape}: give one {single} or a batch of them")
        if observation.shape == single:
            return (
                self._greedy(self.params, observation).item()
                if self.learner.spec.discrete
                else jax.device_get(self._greedy(self.params, observation))
            )
        return jax.device_get(jax.vmap(self._greedy, in_axes=(None, 0))(self.params, observation))
