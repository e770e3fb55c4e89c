"""The guard against divergence: notices a seed whose values exceed what its log can pay.

Bellman updates on a narrow log may raise each other's targets without end; the policy is then worthless long
before a number overflows. The log itself says how large values can be: its largest discounted return-to-go.
The guard looks at probes, the values and actions in a fixed sample of logged states.
"""

import logging
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.agents import short_name
from optimist.data.sampling import Sampler, transitions
from optimist.data.transition import Spec
from optimist.data.views import LoggedValues
from optimist.training.learner import Learner, TrainState
from optimist.training.settings import CONTINUE, FREEZE, STOP
from optimist.training.storage.run_folder import Alarm

SHARE = 0.95  # of the states, whose values are compared with the log: the largest few may be outliers
TIMES = 2  # a policy better than the log may be worth more than any of its returns, but not twice as much
LOOKS = 3  # in a row with too large values are an alarm
EVERY = 1_000  # gradient steps between looks: 1,024 states are then less than a hundredth of the work
COUNT = 1024  # states of each seed's log
UNREACHED = 2**40  # a step that no training reaches; the states are those of its minibatch
COMPARED = 128  # of them, in which action vectors are compared: BCQ imagines a hundred actions in each
AT_ONCE = 256  # states in one pass of the network, so that images need little memory
KEY = 0  # of the actions of agents that choose at random
NEVER = -1  # the step of an alarm that was not raised
log = logging.getLogger("optimist")


class Health(NamedTuple):
    """What the guard knows of every seed. It is saved in the checkpoint, so that a continued run raises the
    same alarms; every leaf has a leading axis of seeds."""

    params: Any  # of the last healthy look
    step: Any  # of the last healthy look; 0: the untrained network
    untrained: Any  # the size of the untrained network's values
    values: Any  # of the probes, at the last look, (seeds, states)
    unhealthy: Any  # looks in a row with too large values
    alarm: Any  # step of the alarm, or NEVER
    size: Any  # of the values at the alarm


def sizes(values) -> np.ndarray:
    """The size that 95 of 100 values do not exceed, (seeds, states) -> (seeds,)."""
    return np.quantile(np.abs(np.asarray(values)), SHARE, axis=1, method="lower").astype(np.float32)


def first_health(params: Any, values, step: int = 0) -> Health:
    """Before the first look; `values` are those of these parameters. Of a checkpoint without the health of
    its seeds, nothing is known about the untrained network."""
    seeds = len(values)
    untrained = sizes(values) if step == 0 else np.zeros(seeds, np.float32)
    none = np.zeros(seeds, np.int32)
    copied = jax.tree.map(jnp.copy, params)  # the learner reuses the memory of its own
    return Health(copied, none + step, untrained, np.asarray(values), none, none + NEVER, 0 * untrained)


def health_like(learner: Learner, seeds: tuple[int, ...]) -> Health:
    """The shapes of the health in a checkpoint."""

    def shape(kind: Any, *more: int) -> Any:
        return jax.ShapeDtypeStruct((len(seeds), *more), kind)

    whole, number = shape(np.int32), shape(np.float32)
    params, values = learner.shapes(seeds).params, shape(np.float32, COUNT)
    return Health(params, whole, number, values, whole, whole, number)


class Guard:
    """Looks at the values of each seed, raises alarms and keeps the last healthy policy of each.

    A look is unhealthy if more than 5% of the values exceed twice the bound. The bound is the largest
    return-to-go of the seed's own log and what terms of the loss may lift every value by, or the size of the
    untrained network's values if that is larger."""

    def __init__(
        self,
        learner: Learner,
        seeds: tuple[int, ...],
        logged: list[LoggedValues],
        health: Health,
        response: str = CONTINUE,
        lift: float = 0.0,
    ):
        self._learner, self.seeds, self._response = learner, seeds, response
        self._logged, self.health = logged, health
        self._largest = np.array([each.largest for each in logged], np.float32)
        self._bound = self._largest + np.float32(lift)

    @property
    def alarms(self) -> dict[int, Alarm]:
        """The seeds that diverged."""
        health = (self.health.alarm, self.health.step, self.health.size, self._largest)
        rows = zip(self.seeds, *(np.asarray(each).tolist() for each in health), strict=True)
        return {
            seed: Alarm(step, healthy, size or None, largest)
            for seed, step, healthy, size, largest in rows
            if step != NEVER
        }

    @property
    def frozen(self) -> np.ndarray:
        """The seeds that learn no more, (seeds,)."""
        return (np.asarray(self.health.alarm) != NEVER) & (self._response == FREEZE)

    def look(self, step: int, params: Any, values) -> list[dict[str, float]]:
        """The figures of each seed for the logs; the third unhealthy look of a seed in a row is an alarm."""
        health, values = self.health, np.asarray(values)
        values = np.where(np.isfinite(values), values, health.values)  # a seed that failed has others
        size = sizes(values)
        known = self._largest > 0  # a log without rewards says nothing
        healthy = ~(known & (size > TIMES * np.maximum(self._bound, np.asarray(health.untrained))))
        healthy |= self.frozen
        calm = healthy & (np.asarray(health.alarm) == NEVER)  # the policy before the first alarm is kept
        drift = np.abs(values - health.values).mean(axis=1)
        self.health = health._replace(
            params=where(calm, params, health.params),
            step=np.where(calm, np.int32(step), health.step),
            values=values,
            unhealthy=np.where(healthy, 0, np.asarray(health.unhealthy) + 1).astype(np.int32),
        )
        self.fail(step, self.health.unhealthy == LOOKS, size)
        figures = []
        for place, logged in enumerate(self._logged):
            row = {"estimate": float(values[place].mean()), "logged_value": logged.mean}
            if logged.largest:
                row["value_ratio"] = float(size[place]) / logged.largest
                row["value_drift"] = float(drift[place]) / logged.largest
            figures.append(row)
        return figures

    def fail(self, step: int, places: np.ndarray, size: Any = 0) -> None:
        """Raise the alarm for these seeds, (seeds,); without a size their figures are not finite."""
        new = places & (np.asarray(self.health.alarm) == NEVER)
        self.health = self.health._replace(
            alarm=np.where(new, np.int32(step), self.health.alarm),
            size=np.where(new, np.float32(size), self.health.size),
        )
        for seed in np.array(self.seeds)[new].tolist() if self._response != STOP else []:
            log.warning("%s", self.told(seed))

    def told(self, seed: int) -> str:
        """The alarm of this seed in one line: what happened, what is kept, and the remedy."""
        alarm = self.alarms[seed]
        reason = (
            "its figures are not finite" if alarm.value is None else f"its values reach {alarm.value:.4g}"
        )
        consequence = {
            CONTINUE: "training goes on (--on-divergence stop or freeze ends it)",
            STOP: "every seed stops here (--on-divergence continue goes on)",
            FREEZE: "the seed keeps that policy and learns no more",
        }[self._response]
        return (
            f"step {alarm.step:,}: seed {seed} diverges: {reason}, and no return in its log exceeds "
            f"{alarm.bound:.4g}; its last healthy policy, of step {alarm.healthy:,}, is kept "
            f"(--step healthy); {consequence}; to prevent it, try {remedy(self._learner)}"
        )

    def hold(self, state: TrainState) -> TrainState:
        """The state with the last healthy parameters of the seeds that learn no more."""
        if not self.frozen.any():
            return state
        still = ~self.frozen
        healthy = self.health.params
        return state._replace(
            params=where(still, state.params, healthy),
            targets=where(still, state.targets, healthy),
            slots=where(still, state.slots, jax.tree.map(jnp.zeros_like, state.slots)),
        )


def is_due(step: int, count: int) -> bool:
    """Is a look due after the `count` steps that end at this one?"""
    return step // EVERY > (step - count) // EVERY


def remedy(learner: Learner) -> str:
    """What ended divergence: the limit did so in every run of DQN, REM and QR-DQN."""
    agent = learner.agent
    peers = ("cql", "discrete_bcq", "discrete_iql") if learner.spec.discrete else ("td3_bc", "iql", "bcq")
    mine = short_name(agent)
    others = ", ".join(name for name in peers if name != mine)
    conservative = f"{'another' if mine in peers else 'a'} conservative agent ({others})"
    limited = getattr(agent, "target_limit", 0) is not None  # already, or it has no such limit
    return conservative if limited else f"--target-limit auto or {conservative}"


@jax.jit
def where(chosen, ours: Any, others: Any) -> Any:
    """For each seed our leaves if it is `chosen`, (seeds,), otherwise the other leaves."""

    def of_leaf(our, other):
        return jnp.where(chosen.reshape(-1, *(1,) * (our.ndim - 1)), our, other)

    return jax.tree.map(of_leaf, ours, others)


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

    def probes(sampler: Sampler) -> Probes:
        log = sampler.dataset
        sampler = replace(Sampler(log), batch=COUNT, seed=sampler.seed)
        positions = sampler.positions(UNREACHED, 1)[0]
        seen, masks = transitions(sampler, positions, log.timeline.frames), log.timeline.allowed
        return Probes(
            seen.observation, seen.action, None if masks is None else masks[log.steps_at(positions)]
        )

    return jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *map(probes, samplers)))


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
