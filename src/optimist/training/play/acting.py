"""Acting with trained parameters: one compiled program for all seeds and lanes."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.training.learner import Learner

POLICY = 2**32 - 1  # the seed of policies that choose at random; runs are unlikely to use it


@partial(jax.jit, static_argnames="learner")
def act(learner: Learner, params: dict, observations, epsilon, key, turn, allowed=None):
    """Epsilon-greedy actions of every seed in every lane, (S, L, ...) -> (S, L, ...), among those that the
    masks allow, (S, L, A), if there are masks.

    `turn` is the number of the call. It is folded into the key, so that acting needs no state.
    """

    def choose(params, observation, key, allowed):
        action_key, explore_key = jax.random.split(key)
        best = learner.action(params, observation, action_key, allowed)
        return explore(learner.spec, best, epsilon, explore_key, allowed)

    keys = jax.random.split(jax.random.fold_in(key, turn), observations.shape[:2])
    return jax.vmap(jax.vmap(choose, in_axes=(None, 0, 0, 0)))(params, observations, keys, allowed)


@partial(jax.jit, static_argnames="learner")
def act_online(learner: Learner, params: dict, observations, epsilon, key, turn, episodes, allowed=None):
    """The same for an agent that collects data. `episodes` (S, L) is the number of each lane's episode,
    because some agents explore with one mixture of their heads for a whole episode."""

    def choose(params, observation, key, episode_key, allowed):
        action_key, explore_key = jax.random.split(key)
        best = learner.online_action(params, observation, action_key, episode_key, allowed)
        return explore(learner.spec, best, epsilon, explore_key, allowed)

    turn_key, lane_key = jax.random.split(key)
    keys = jax.random.split(jax.random.fold_in(turn_key, turn), episodes.shape)
    lane_keys = jax.random.split(lane_key, episodes.shape)
    episode_keys = jax.vmap(jax.vmap(jax.random.fold_in))(lane_keys, episodes)
    choose_all = jax.vmap(jax.vmap(choose, in_axes=(None, 0, 0, 0, 0)))
    return choose_all(params, observations, keys, episode_keys, allowed)


def explore(spec: Spec, greedy, epsilon, key, allowed=None) -> Any:
    """The greedy action, or with probability epsilon a uniform one, which may be the greedy one too."""
    gamble_key, action_key = jax.random.split(key)
    if allowed is not None:
        anything = jax.random.categorical(action_key, jnp.where(allowed, 0.0, -jnp.inf)).astype(greedy.dtype)
    elif spec.discrete:
        anything = jax.random.randint(action_key, (), 0, spec.actions, greedy.dtype)
    else:
        low, high = jnp.array(spec.action_low), jnp.array(spec.action_high)
        anything = jax.random.uniform(action_key, greedy.shape, minval=low, maxval=high)
    return jnp.where(jax.random.uniform(gamble_key) < epsilon, anything, greedy)


class Player:
    """Plays with the parameters of all seeds, each in its part of the lanes. The last frames of every lane
    stay on the device: a frame is transferred once, and one program stacks the frames and chooses actions."""

    def __init__(self, learner: Learner, lanes: int, seeds: int = 1, choose=act):
        self._learner, self._seeds, self._choose = learner, seeds, choose
        self.seen = blank(learner.spec, lanes)

    def __call__(self, params: dict, frames: np.ndarray, began: np.ndarray, *how, allowed=None) -> Any:
        """The actions, (S, L, ...), among the allowed ones; a lane whose episode `began` forgets its earlier
        frames."""
        chosen, self.seen = look_and_choose(
            self._learner, self._seeds, self._choose, params, self.seen, frames, began, *how, allowed=allowed
        )
        return chosen


@partial(jax.jit, static_argnames=("learner", "seeds", "choose"), donate_argnames="seen")
def look_and_choose(
    learner: Learner, seeds: int, choose, params: dict, seen, frames, began, *how, allowed=None
):
    seen = pushed(seen, frames, began)
    masks = None if allowed is None else allowed.reshape(seeds, -1, allowed.shape[-1])
    return choose(learner, params, seen.reshape(seeds, -1, *seen.shape[1:]), *how, allowed=masks), seen


def blank(spec: Spec, lanes: int) -> Any:
    return jnp.zeros((lanes, *spec.observation_shape), spec.frame_dtype)


def pushed(seen, frames, began):
    """The last frames of every lane on the last axis, oldest first, in the order of sampling; a lane whose
    episode `began` has zeros before its first frame."""
    began = began.reshape(-1, *(1,) * (frames.ndim - 1))
    older = jnp.where(began, jnp.zeros((), seen.dtype), seen[..., frames.shape[-1] :])
    return jnp.concatenate([older, frames], axis=-1)


class Policy:
    """A trained agent as a function: observation -> action, for one observation or a batch of them."""

    def __init__(self, learner: Learner, params: dict, masked: bool = False):
        """`masked` says that it learned from a log with masks, so that each call has to name one."""
        self.learner, self.params, self.turn, self.masked = learner, params, 0, masked

        def key(turn):
            return jax.random.fold_in(jax.random.PRNGKey(POLICY), turn)

        def one(params, observation, turn, mask):
            return learner.action(params, observation, key(turn), mask)

        def many(params, observations, turn, masks):
            keys = jax.random.split(key(turn), observations.shape[0])
            choose = jax.vmap(learner.action, in_axes=(None, 0, 0, 0))
            return choose(params, observations, keys, masks)

        # The key is made inside the program: alone, it would take longer than all the rest.
        self._one, self._many = jax.jit(one), jax.jit(many)

    def __call__(self, observation, allowed=None):
        """The action, or those of a batch, as the user's own ids. `allowed` is true for each action that can
        be chosen, (actions,) or (batch, actions), in the order of `spec.action_names`."""
        spec, single = self.learner.spec, self.learner.spec.observation_shape
        given = np.asarray(observation)
        observation = spec.arranged(given)
        if observation.shape[-len(single) :] != single or observation.ndim > len(single) + 1:
            wanted = spec.in_users_layout(np.empty(single, bool)).shape
            raise UsageError(f"observations of {given.shape}: give one {wanted} or a batch of them")
        observation = _as_logged(spec, observation)
        if allowed is None and self.masked:
            raise UsageError(
                "the log has masks of allowed actions: give the mask too, policy(observation, allowed); all "
                "true allows every action"
            )
        self.turn += 1  # the next call draws new random numbers
        mask = None if allowed is None else self._mask(allowed, observation)
        choose = self._one if observation.shape == single else self._many
        action = np.asarray(choose(self.params, observation, self.turn - 1, mask))
        if not spec.discrete:
            return action
        return spec.named(action.item() if action.ndim == 0 else action)

    def _mask(self, allowed, observation) -> np.ndarray:
        """The mask of one observation or of each in a batch, checked."""
        spec, mask = self.learner.spec, np.asarray(allowed)
        batch = observation.shape[: observation.ndim - len(spec.observation_shape)]
        if (
            not spec.discrete
            or mask.dtype != bool
            or mask.shape not in ((spec.actions,), (*batch, spec.actions))
        ):
            raise UsageError(
                f"allowed is {mask.shape} {mask.dtype}: give {(*batch, spec.actions)} true or false values"
                if spec.discrete
                else "allowed belongs to discrete actions, and these are vectors; leave it out"
            )
        if not mask.any(axis=-1).all():
            raise UsageError("allowed has no true value for an observation: allow at least one action")
        return np.broadcast_to(mask, (*batch, spec.actions))


def _as_logged(spec: Spec, observation: np.ndarray) -> np.ndarray:
    """The observation in the type of the log, by which networks tell pixels of 0 to 255 from other numbers;
    UsageError where an exported policy raises an error too."""
    if observation.dtype.kind not in "biuf" or not np.isfinite(observation).all():
        raise UsageError("the observation holds NaN, infinity or text: give finite numbers")
    dtype = np.dtype(spec.frame_dtype)
    if dtype.kind == "f" and observation.dtype == np.uint8 and len(spec.frame_shape) == 3:
        raise UsageError("the observation is uint8, and the log's images are floats: make it one like them")
    with np.errstate(over="ignore", invalid="ignore"):
        taken = observation.astype(dtype, copy=False)
    if dtype.kind != "f" and not (taken == observation).all():
        known = "0 or 1" if dtype.kind == "b" else "a whole number from 0 to 255"
        wrong = observation[taken != observation][0]
        raise UsageError(f"the observation holds {wrong:g}, and in the log each number is {known}")
    return taken
