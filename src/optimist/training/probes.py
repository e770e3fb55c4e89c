"""Probes: the values and actions of a run's agents in a fixed sample of logged states."""

from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.sampling import Sampler, transitions
from optimist.data.transition import Spec
from optimist.training.learner import Learner

COUNT = 1024  # states of each seed's log
STEP = 2**40  # a step that no training reaches; the states are those of its minibatch
COMPARED = 128  # of them, in which action vectors are compared: BCQ imagines a hundred actions in each
AT_ONCE = 256  # states in one pass of the network, so that images need little memory
KEY = 0  # of the actions of agents that choose at random


class Probes(NamedTuple):
    """Logged states of each seed's own log, and what was done there; every leaf is (seeds, states, ...)."""

    observation: Any
    action: Any
    allowed: Any  # which actions could be chosen; None if it was not logged


class Answers(NamedTuple):
    """The values and actions of all seeds' agents in the states of the probes."""

    values: Any  # of the greedy action in each state, (seeds, states); None for agents without values
    agreement: Any  # with the logged actions, (seeds,); see `agreement`


def probes_of(samplers: list[Sampler]) -> Probes:
    """The probes of each seed, the same whenever the run is continued."""
    return jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *map(_probes, samplers)))


def _probes(sampler: Sampler) -> Probes:
    log = sampler.dataset
    sampler = replace(Sampler(log), batch=COUNT, seed=sampler.seed)
    positions = sampler.positions(STEP, 1)[0]
    seen = transitions(sampler, positions, log.timeline.frames)
    masks = log.timeline.allowed
    return Probes(seen.observation, seen.action, None if masks is None else masks[log.steps_at(positions)])


@partial(jax.jit, static_argnames=("learner", "seeds"))
def answers(learner: Learner, seeds: int, params: dict, probes: Probes) -> Answers:
    """The answers of these parameters, in one program for all seeds."""
    keys = jax.random.split(jax.random.PRNGKey(KEY), COUNT)
    compared = COUNT if learner.spec.discrete else COMPARED

    def value_in(params, probe):
        return learner.estimate(params, probe.observation, probe.allowed)

    def in_state(params, item):
        probe, key = item
        action = learner.action(params, probe.observation, key, probe.allowed)
        return value_in(params, probe), agreement(learner.spec, action, probe.action)

    parts = (slice(None, compared), slice(compared, None))

    def of_seed(params, probes):
        first, rest = (jax.tree.map(itemgetter(part), (probes, keys)) for part in parts)
        values, agreed = jax.lax.map(partial(in_state, params), first, batch_size=AT_ONCE)
        if compared < COUNT:
            more = jax.lax.map(partial(value_in, params), rest[0], batch_size=AT_ONCE)
            values = jnp.concatenate([values, more])
        return Answers(values if learner.agent.has_values else None, agreed.mean())

    return jax.vmap(of_seed, axis_size=seeds)(params, probes)  # an agent may have no parameters


def agreement(spec: Spec, action, logged) -> Any:
    """Of discrete actions 1 if both are the same, else 0. Of vectors the mean closeness of their numbers: 1
    if they are equal, 0 if they lie at opposite bounds."""
    if spec.discrete:
        return jnp.float32(action == logged)
    low, high = jnp.array(spec.action_low), jnp.array(spec.action_high)
    width = jnp.where(high > low, high - low, 1)
    return 1 - (jnp.abs(action - logged) / width).mean()
