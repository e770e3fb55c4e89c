"""The loop of gradient steps for accelerators: a loop over stretches in which no target moves.

Inside one loop over all steps, a GPU would have to write every weight of the targets at each step, moved or
not, because a branch in the loop is slower still.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

AT_ONCE = 4  # steps of one turn of the loop: the target's pass of a step does not wait for the step before
SHORTEST_PERIOD = 50  # of a target: a stretch is more than a few turns
FEWEST_WEIGHTS = (
    1_000_000  # of a target. A small one costs little to write, and unrolled small steps are slower
)


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
