"""Batch-constrained Q-learning: generates actions like those in the data, adjusts them, takes the best."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.agents._actor_critic import ActorCritic, Bounds, Networks, keys_for
from optimist.agents._agent import Objective
from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.networks import ActionVae, sizes

LATENT_LIMIT = 0.5  # codes are clipped to +- this, which gives actions that are common in the data


class Imitator(NamedTuple):
    """A variational auto-encoder with its parameters filled in; it decodes to actions inside the box."""

    network: ActionVae
    params: dict
    bounds: Bounds

    def encode(self, observation, action) -> Any:
        return self.network.encode(self.params, observation, self.bounds.read(action))

    def decode(self, observation, code) -> Any:
        return self.bounds.scaled(self.network.decode(self.params, observation, code))

    def imagine(self, observation, key, count: int) -> Any:
        """Random actions that are likely in the data after this observation, (count, A)."""
        codes = jax.random.normal(key, (count, self.network.latent))
        codes = jnp.clip(codes, -LATENT_LIMIT, LATENT_LIMIT)
        return jax.vmap(partial(self.decode, observation))(codes)


@dataclass(frozen=True, kw_only=True)
class Bcq(ActorCritic):
    """BCQ (Fujimoto et al. 2019, algorithm 1), with the settings of its authors' code."""

    critics: int = 2
    caution: Annotated[float, "lambda: weight of the smaller critic; the larger one gets the rest"] = 0.75
    candidates: Annotated[int, "next actions that are generated for a target"] = 10
    candidates_at_play: Annotated[int, "actions that are generated in play; the best is taken"] = 100
    perturbation: Annotated[float, "phi: largest change by the actor; the largest action is 1"] = 0.05
    vae_hidden: Annotated[str, "widths of the layers of encoder and decoder"] = "750,750"

    def __post_init__(self):
        super().__post_init__()
        sizes(self.vae_hidden)  # raises for invalid widths
        if min(self.candidates_at_play, self.candidates) < 1:
            raise UsageError(
                f"candidates {self.candidates}, candidates_at_play {self.candidates_at_play}: "
                "both must be at least 1"
            )

    def vae_loss(self, vae, step, key):
        mean, deviation = vae.encode(step.observation, step.action)
        code = mean + deviation * jax.random.normal(key, mean.shape)
        read = vae.bounds.read
        error = (read(vae.decode(step.observation, code)) - read(step.action)) ** 2
        divergence = -0.5 * (1 + 2 * jnp.log(deviation) - mean**2 - deviation**2)
        return error.mean() + 0.5 * divergence.mean()

    def critic_loss(self, now, target, step, key, shared_key):
        imagined = now.vae.imagine(step.next_observation, key, self.candidates)
        better = jax.vmap(lambda action: target.actor(step.next_observation, action))(imagined)
        values = jax.vmap(lambda action: target.critics(step.next_observation, action))(better)
        careful = self.caution * values.min(axis=1) + (1 - self.caution) * values.max(axis=1)
        return ((self.target(step, careful.max()) - now.critics(step.observation, step.action)) ** 2).sum()

    def actor_loss(self, now, step, key):
        (imagined,) = now.vae.imagine(step.observation, key, 1)
        return -now.first_critic(step.observation, now.actor(step.observation, imagined))

    def vae(self, spec: Spec) -> ActionVae:
        return ActionVae(len(spec.action_low), sizes(self.vae_hidden), self.torso)

    def init(self, key, spec: Spec) -> dict:
        vae_key, actor_key, rest = jax.random.split(key, 3)
        (observation,), (action,) = spec.observation_shape, spec.action_shape
        actor = self.perceptron(action).init(actor_key, observation, action)
        vae = self.vae(spec).init(vae_key, observation)
        return {**super().init(rest, spec), "actor": actor, "vae": vae}

    def networks(self, spec: Spec, params: dict) -> Networks:
        bounds, network = Bounds.of(spec), self.perceptron(len(spec.action_low))

        def better(observation, action):
            change = jnp.tanh(network(params["actor"], observation, bounds.read(action)))
            return bounds.clip(action + self.perturbation * bounds.reach * change)

        imitator = Imitator(self.vae(spec), params["vae"], bounds)
        return Networks(better, *self.judges(spec, params), bounds, imitator)

    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        def vae_loss(params, targets, batch, key):
            vae = self.networks(spec, params).vae
            return jax.vmap(partial(self.vae_loss, vae))(batch, keys_for(batch, key)[0]).mean()

        return (Objective("vae", vae_loss), *super().objectives(spec))

    def choices(self, spec: Spec, params: dict, observation, key) -> tuple[Any, Any]:
        """The candidates in play, (C, A), and their values by the first critic, (C,)."""
        now = self.networks(spec, params)
        imagined = now.vae.imagine(observation, key, self.candidates_at_play)
        better = jax.vmap(partial(now.actor, observation))(imagined)
        values = jax.vmap(partial(now.first_critic, observation))(better)
        return better, values

    def action(self, spec: Spec, params: dict, observation, key) -> Any:
        """The candidate with the highest value."""
        actions, values = self.choices(spec, params, observation, key)
        return actions[jnp.argmax(values)]

    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        now = self.networks(spec, params)
        (imagined,) = now.vae.imagine(observation, jax.random.PRNGKey(0), 1)
        return now.critics(observation, now.actor(observation, imagined)).mean()


# The authors rewrote their code in March 2020: before, it acted by the best of 10 candidates, since then by
# the best of 100.
PRESETS = {"2020": Bcq(), "2019": Bcq(candidates_at_play=10)}
