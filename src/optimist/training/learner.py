"""The learner of all agents: a pure update, scanned over steps and fused over seeds."""

import hashlib
import logging
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

try:
    from jax._src.lru_cache import LRUCache
except ImportError:  # not public: a later version of JAX may do without
    LRUCache = None  # type: ignore[assignment, misc]

from optimist.agents._agent import Agent, Objective
from optimist.data.machine import cache_folder
from optimist.data.transition import Spec, Transition
from optimist.equations.optimizers import changed
from optimist.errors import UsageError
from optimist.networks.precision import products_in
from optimist.training.scaling import Inputs

MANY_SEEDS = 100  # more are announced, because one program trains all of them
AT_ONCE = 4  # steps of one turn of the loop: the target's pass of a step does not wait for the step before
SHORTEST_PERIOD = 50  # of a target: a stretch is more than a few turns
FEWEST_WEIGHTS = (
    1_000_000  # of a target. A small one costs little to write, and unrolled small steps are slower
)
LARGEST = 8 * 2**30  # bytes of compiled programs; those that were not used for longest are removed
PATIENCE = 1.0  # seconds; other processes hold the lock for milliseconds
SHORTEST = 0.0  # seconds; with a threshold the load of the machine would decide which programs are kept
NUMBERS = {  # what every result depends on and the tests have: no variable such as JAX_ENABLE_X64 changes it
    "jax_enable_x64": False,
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
}
log = logging.getLogger("optimist")


class TrainState(NamedTuple):
    """The complete state of training; every leaf except `step` has a leading axis of seeds."""

    params: Any  # by parameter group
    targets: Any
    slots: Any  # the optimiser's moments, by parameter group
    step: Any  # gradient steps done; one number for all seeds, so that periods remain branches
    key: Any  # the key of all random draws; each step folds its number into it


def check_seeds(seeds: tuple[int, ...]) -> None:
    if not seeds or len(set(seeds)) != len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
        raise UsageError(f"seeds {seeds}: give at least one, each once, from 0 to {2**32 - 1}")
    if len(seeds) > MANY_SEEDS:
        log.warning(
            "%s seeds are trained at once: every step takes %s times the work", *[f"{len(seeds):,}"] * 2
        )


PER_SEED = TrainState(params=0, targets=0, slots=0, step=None, key=0)


@dataclass(frozen=True)
class Learner:
    """Trains one agent on data of one spec; equal learners share their compiled programs."""

    agent: Agent
    spec: Spec
    inputs: Inputs | None = None  # how observations are scaled; None: the agent reads them as they are
    precision: str = "tf32"  # of the products of a gradient step, on a GPU

    def __post_init__(self):
        set_up_jax()  # before anything is compiled

    def init(self, seeds: tuple[int, ...]) -> TrainState:
        """The initial states of all seeds; the target starts as a copy of the network."""
        states = []
        for seed in seeds:
            init_key, run_key = jax.random.split(jax.random.PRNGKey(seed))
            params = self.agent.init(init_key, self.spec)
            slots = {
                name: self.agent.optimizer_of(name).transform().init(group) for name, group in params.items()
            }
            targets = jax.tree.map(jnp.copy, params)  # a separate buffer, so that both can be donated
            states.append(TrainState(params, targets, slots, jnp.zeros((), jnp.int32), run_key))
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
        return stacked._replace(step=states[0].step)

    def shapes(self, seeds: tuple[int, ...]) -> TrainState:
        """The shapes of a state, to compare with a checkpoint; nothing is computed."""
        return jax.eval_shape(lambda: self.init(seeds))

    def read(self, observations: Any) -> Any:
        """Observations as the agent reads them, one or a batch."""
        return observations if self.inputs is None else self.inputs(observations)

    def action(self, params: dict, observation, key, allowed=None) -> Any:
        """The agent's best action, of those that the mask allows, (A,), if there is one."""
        return self._asked(self.agent.action, params, observation, key, allowed=allowed)

    def online_action(self, params: dict, observation, key, episode_key, allowed=None) -> Any:
        """The agent's action while it collects data."""
        return self._asked(self.agent.online_action, params, observation, key, episode_key, allowed=allowed)

    def estimate(self, params: dict, observation, allowed=None) -> Any:
        """The agent's estimate of the return; `allowed` are the actions that can be chosen, (A,)."""
        return self._asked(self.agent.estimate, params, observation, allowed=allowed)

    def _asked(self, method: Callable, params: dict, observation, *keys, allowed) -> Any:
        """The answer of the agent, which need not know masks where there are none."""
        given = (self.spec, params, self.read(observation), *keys)
        if allowed is None:
            return method(*given)
        if "allowed" not in signature(method).parameters:
            raise UsageError(
                f"{type(self.agent).__name__}.{method.__name__} cannot choose among some actions only: give "
                "it an argument allowed=None, the mask of the actions that can be chosen"
            )
        return method(*given, allowed=allowed)

    def update(self, state: TrainState, batch: Transition) -> tuple[TrainState, dict]:
        """One gradient step of one seed: each objective that is due, then the target if it is due."""
        state, losses = self.descended(state, batch)
        # As in the released code: after the gradient step, and also after the very first one.
        due = (state.step - 1) % self.agent.target_period == 0
        targets = if_due(due, lambda: self.followed(state), lambda: state.targets)
        return state._replace(targets=targets), losses

    def descended(self, state: TrainState, batch: Transition) -> tuple[TrainState, dict]:
        """The state after each objective that is due; the target stays."""
        losses = {}
        batch = self._read_batch(batch)
        step_key = jax.random.fold_in(state.key, state.step)
        with products_in(self.precision):
            for number, objective in enumerate(self.agent.objectives(self.spec)):
                loss_key = jax.random.fold_in(step_key, number)
                state, losses[objective.name] = self._descend(state, objective, batch, loss_key)
        return state._replace(step=state.step + 1), losses

    def losses(self, params: dict, targets: dict, batch: Transition, key) -> dict:
        """The loss of every objective on a batch; nothing is learned."""
        batch = self._read_batch(batch)
        objectives = self.agent.objectives(self.spec)
        return {each.name: each.loss(params, targets, batch, key) for each in objectives}

    def _read_batch(self, batch: Transition) -> Transition:
        return batch._replace(
            observation=self.read(batch.observation), next_observation=self.read(batch.next_observation)
        )

    def followed(self, state: TrainState) -> Any:
        """The targets, moved towards the networks by the target rate."""
        rate = self.agent.target_rate
        if rate == 1:
            return state.params
        return jax.tree.map(lambda p, t: t + rate * (p - t), state.params, state.targets)

    def _descend(self, state: TrainState, objective: Objective, batch: Transition, key):
        name = objective.name

        def loss(group):
            return objective.loss({**state.params, name: group}, state.targets, batch, key)

        def step(state):
            value, gradient = jax.value_and_grad(loss)(state.params[name])
            changes, slots = (
                self.agent.optimizer_of(name)
                .transform()
                .update(gradient, state.slots[name], state.params[name])
            )
            group = changed(state.params[name], changes)
            params, slots = {**state.params, name: group}, {**state.slots, name: slots}
            return state._replace(params=params, slots=slots), value

        if objective.period == 1:
            return step(state)
        due = state.step % objective.period == 0
        return if_due(due, lambda: step(state), lambda: (state, jnp.zeros(())))


def if_due(due, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """One of two states. On a CPU this is a branch, and only one of them is computed. On an accelerator a
    branch is slow (a small network learns a sixth slower with one), so both are computed."""

    def branch(due):
        return jax.lax.cond(due, then, otherwise)

    return jax.lax.platform_dependent(due, cpu=branch, default=partial(select, then, otherwise))


def select(then: Callable[[], Any], otherwise: Callable[[], Any], due) -> Any:
    return jax.tree.map(partial(jnp.where, due), then(), otherwise())


# A step is about seventy small kernels, few of which fill a GPU. XLA records them as a graph of dependencies:
# independent kernels run in parallel, and none waits for the host. On an H200 a step is a third faster,
# evaluation (play/rollout.py) a quarter, fused play (play/fused.py) a twelfth. Other devices ignore it.
SIDE_BY_SIDE = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,"
    "CONDITIONAL,WHILE",
    "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT",
    "xla_gpu_graph_min_graph_size": 1,
}


@partial(
    jax.jit,
    static_argnames=("learner", "minibatch"),
    donate_argnames="state",
    compiler_options=SIDE_BY_SIDE,
)
def advance(learner: Learner, state: TrainState, minibatch, resident, items) -> tuple[TrainState, dict]:
    """Take one step per item: (steps, seeds, ...) -> losses (steps, seeds) by objective, in one program.

    The bits do not depend on how steps are divided into chunks of two or more. (XLA unrolls a loop of one
    step and may round it differently; so may a GPU where `scan_in_stretches` takes several steps at once.)
    """
    return advanced(learner, state, minibatch, resident, items)


def advanced(learner: Learner, state: TrainState, minibatch, resident, items) -> tuple[TrainState, dict]:
    """`advance` as a part of a larger program."""
    period = learner.agent.target_period
    if jax.default_backend() != "cpu" and pays(state.targets, len(state.key), period):
        step = learner.descended
        walk: Callable = partial(scan_in_stretches, follow=learner.followed, period=period)
    else:
        step, walk = learner.update, jax.lax.scan

    def update(state, item):
        return step(state, minibatch(resident, item))

    if state.key.shape[0] > 1:
        fused = jax.vmap(update, in_axes=(PER_SEED, 0), out_axes=(PER_SEED, 0))
        return walk(fused, init=state, xs=items)
    # A single seed needs no extra axis: this is a fifth faster on a CPU.
    alone = jax.tree.map(lambda leaf: leaf[0], state._replace(step=state.step[None]))
    alone, losses = walk(update, init=alone, xs=jax.tree.map(lambda leaf: leaf[:, 0], items))
    together = jax.tree.map(lambda leaf: leaf[None], alone)
    return together._replace(step=alone.step), jax.tree.map(lambda leaf: leaf[:, None], losses)


def pays(targets: Any, seeds: int, period: int) -> bool:
    """Whether a loop over stretches is worth its larger program."""
    weights = sum(leaf.size for leaf in jax.tree.leaves(targets)) // seeds
    return weights >= FEWEST_WEIGHTS and period >= SHORTEST_PERIOD


def scan_in_stretches(
    descend: Callable[[Any, Any], tuple[Any, dict]],
    init: Any,
    xs: Any,
    *,
    follow: Callable[[Any], Any],
    period: int,
) -> tuple[Any, dict]:
    """`jax.lax.scan` of gradient steps that leave the targets alone; `follow` gives the targets after each
    step whose number is a multiple of `period`."""
    state, items = init, xs
    count = len(jax.tree.leaves(items)[0])
    like = jax.eval_shape(lambda: descend(state, jax.tree.map(lambda leaf: leaf[0], items))[1])
    losses = jax.tree.map(lambda loss: jnp.zeros((count, *loss.shape), loss.dtype), like)

    def stretch(carry):
        first, state, losses = carry
        until_target_moves = 1 + -state.step % period
        last = jnp.minimum(first + until_target_moves, count)
        targets, without = state.targets, state._replace(targets=())

        def step(place, carry):
            state, losses = carry
            item = jax.tree.map(lambda leaf: leaf[place], items)
            state, found = descend(state._replace(targets=targets), item)
            losses = jax.tree.map(lambda series, loss: series.at[place].set(loss), losses, found)
            return state._replace(targets=()), losses

        def several(group, carry):
            places = first + group * AT_ONCE + jnp.arange(AT_ONCE)
            return jax.lax.scan(lambda carry, place: (step(place, carry), None), carry, places, unroll=True)[
                0
            ]

        groups = (last - first) // AT_ONCE
        carry = jax.lax.fori_loop(0, groups, several, (without, losses))
        state, losses = jax.lax.fori_loop(first + groups * AT_ONCE, last, step, carry)
        moves = (state.step - 1) % period == 0
        state = state._replace(targets=targets)
        moved = jax.tree.map(partial(jnp.where, moves), follow(state), targets)
        return last, state._replace(targets=moved), losses

    first = jnp.zeros((), jnp.int32)
    _, state, losses = jax.lax.while_loop(lambda carry: carry[0] < count, stretch, (first, state, losses))
    return state, losses


@cache
def set_up_jax() -> None:
    """Let JAX compute in float32 with the random numbers of one generator, and use compiled programs that all
    processes of this machine share, in a folder of the user's cache, unless JAX's settings name a folder, or
    none. The first learner of a process does this; importing this package changes nothing.

    JAX keeps no lock unless the folder has a largest size; with one, several processes can use the folder. A
    CPU program may use instructions that another processor lacks, and a home folder may serve different
    nodes: each kind of processor has its own folder.

    With a largest size JAX reads a file of every kept program before it keeps another, 0.1 ms each: with
    5,000 of them every new program took half a second. Here the size is checked once, when a process begins.
    """
    for name, value in NUMBERS.items():
        jax.config.update(name, value)
    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
        return
    folder = cache_folder() / "compiled" / _processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _tidy(folder, _eviction_from(folder))
    except filelock.Timeout:  # JAX would wait ten seconds for each program
        log.warning("%s is locked by another process: programs are compiled again", folder)
        return
    except OSError:  # a home folder that cannot be written or locked: every process compiles for itself
        return
    jax.config.update("jax_compilation_cache_max_size", LARGEST)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    compilation_cache.reset_cache()  # JAX looks for a folder once, and the user may have compiled before


def _tidy(folder: Path, evict: Callable | None) -> None:
    """Remove what a killed process left half written, on which JAX would fail, and what is beyond the largest
    size, the programs that were not used for longest first.

    JAX writes the time of a program's last use after the program itself."""
    with filelock.FileLock(folder / ".lockfile", timeout=PATIENCE):
        sizes = {file.name: file.stat().st_size for file in os.scandir(folder)}
        for name in sizes:
            if name.endswith("-cache") and f"{name.removesuffix('-cache')}-atime" not in sizes:
                (folder / name).unlink()
        if evict and sum(sizes.values()) > LARGEST:
            evict(LRUCache(str(folder), max_size=LARGEST))


def _eviction_from(folder: Path) -> Callable | None:
    """JAX's removal of programs, which from now on it does not begin by itself in this folder; None if this
    version of JAX has no such method, and goes on as it does."""
    evict: Callable | None = getattr(LRUCache, "_evict_if_needed", None)
    if evict is None:
        return None

    def elsewhere(cache, **size) -> None:
        if str(cache.path) != str(folder):
            evict(cache, **size)

    LRUCache._evict_if_needed = elsewhere  # type: ignore[method-assign, assignment]
    return evict


def _processor() -> str:
    """A name for the instructions of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    instructions = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    words = " ".join(sorted(instructions.partition(":")[2].split())) or platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
