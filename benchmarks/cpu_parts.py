"""Where the time of one update goes on a CPU, part by part: ours beside compiled PyTorch.

`OPTIMIST_PEERS=PYTHON BATCH=32 python -m benchmarks cpu_parts`, where that Python has torch. REM with 200
heads and the Atari network on one core; processor time, so that other programs hardly disturb the figures.

A part is the difference of two programs, of which the second does one thing more: first the minibatch, then
both networks up to a layer, then the gradient down to a layer, then Adam. Each time is the least of a few.
With WHOLE=1 only the whole update is timed; UPDATES is the number of updates in one call, 10 by default.
"""

import json
import os
import subprocess
import time
from pathlib import Path

from benchmarks.peer_parts import ACTIONS, BATCH, HEADS, PARTS, TIMED, UPDATES, least

CORE = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
TRANSITIONS = 1000
IMAGES = ((21, 21, 32), (11, 11, 64), (11, 11, 64))  # after each convolution


def programs() -> list:
    """One function for each part, which makes UPDATES updates up to this part."""
    import jax
    import jax.numpy as jnp

    from optimist.agents import preset
    from optimist.data.sampling import Sampler
    from optimist.networks import TORSOS, LayeredTorso, Table
    from optimist.studies.bench import random_log, updating
    from optimist.training.feeding import feed_of
    from optimist.training.learner import Learner

    log, torso = random_log("nature", TRANSITIONS), TORSOS["nature"]
    feed = feed_of([Sampler(log, batch=BATCH)], "device")
    learner = Learner(preset("rem"), log.spec)
    layers = [LayeredTorso((convolution,), hidden=()) for convolution in torso.convolutions]
    alpha, items = jnp.full(HEADS, 1 / HEADS), feed.items(0, UPDATES)[:, 0]

    state = learner.init((0,))
    networks = [jax.tree.map(lambda leaf: leaf[0], *tree.values()) for tree in (state.params, state.targets)]

    def features(params, observation, depth: int, lowest: int = 0):
        """After `depth` layers; no gradient goes below the layer `lowest`."""
        x = observation
        for place, layer in enumerate(layers[:depth]):
            x = jax.lax.stop_gradient(x) if place == lowest else x
            x = layer([params["torso"][place]], x).reshape(IMAGES[place])
        if depth > len(layers):
            x = jax.lax.stop_gradient(x) if lowest == len(layers) else x
            x = LayeredTorso(hidden=torso.hidden)([params["torso"][-1]], x.reshape(-1))
        return x

    def loss(params, targets, batch, lowest: int):
        def of_one(step):
            found = [
                features(each, seen, len(layers) + 1, lowest)
                for each, seen in ((params, step.observation), (targets, step.next_observation))
            ]
            found[0] = jax.lax.stop_gradient(found[0]) if lowest > len(layers) else found[0]
            value, best = (
                Table(seen, each["weight"], each["bias"]) @ alpha
                for seen, each in zip(found, (params, targets), strict=True)
            )
            goal = jax.lax.stop_gradient(step.reward + step.discount * best.max())
            return jnp.square(value[step.action] - goal)

        return jax.vmap(of_one)(batch).mean()

    def read(params, targets, batch):
        return (
            batch.observation.astype(jnp.float32).mean() + batch.next_observation.astype(jnp.float32).mean()
        )

    def forward(depth: int):
        def both(params, targets, batch):
            pairs = ((params, batch.observation), (targets, batch.next_observation))
            return [jax.vmap(lambda seen, p=p: features(p, seen, depth))(seen) for p, seen in pairs]

        return both

    def value(params, targets, batch):
        return loss(params, targets, batch, 0)

    def backward(lowest: int):
        def gradient(params, targets, batch):
            kept = {**params, "torso": params["torso"][lowest:]}

            def of_kept(kept):
                return loss(
                    {**kept, "torso": params["torso"][:lowest] + kept["torso"]}, targets, batch, lowest
                )

            return jax.value_and_grad(of_kept)(kept)

        return gradient

    def repeated(part):
        def every(resident, params, targets):
            def one(total, item):
                found = part(params, targets, feed.minibatch(resident, item))
                found = jax.lax.optimization_barrier(found)  # so that all of it is computed
                return total + sum(leaf.ravel()[0] for leaf in jax.tree.leaves(found)), None

            return jax.lax.scan(one, jnp.zeros(()), items)[0]

        program = jax.jit(every)
        return lambda: program(feed.resident, *networks).block_until_ready()

    depths = range(1, len(layers) + 2)
    parts = [read, *map(forward, depths), value, *map(backward, reversed(range(len(layers) + 2)))]
    return [*map(repeated, parts), updating(learner, feed, seeds=1, steps=UPDATES)]


def ours(windows: bool) -> list[float]:
    """Milliseconds up to each part; with whole windows, as on other platforms, or by rows."""
    import jax

    from optimist.networks import torsos

    jax.clear_caches()  # the learners of both forms are equal, and equal learners share their programs
    rows_pay = torsos.rows_pay
    torsos.rows_pay = (lambda image, convolution: False) if windows else rows_pay
    try:
        return [least(program) for program in programs()[TIMED]]
    finally:
        torsos.rows_pay = rows_pay


def theirs() -> list[float]:
    script = Path(__file__).with_name("peer_parts.py")
    done = subprocess.run([os.environ["OPTIMIST_PEERS"], script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    if CORE is not None:
        os.sched_setaffinity(0, {CORE})  # before JAX starts its threads
    start = time.perf_counter()
    import jax

    jax.config.update("jax_enable_compilation_cache", False)
    columns = {"whole windows": ours(windows=True), "by rows": ours(windows=False), "PyTorch": theirs()}
    print(f"REM, {HEADS} heads, {ACTIONS} actions, Atari network, batch {BATCH}: ms of one core")
    print(f"{'':52}" + "".join(f"{name:>15}" for name in columns))
    for place, part in enumerate(PARTS if TIMED.start is None else ()):
        spent = [times[place] - (times[place - 1] if place else 0) for times in columns.values()]
        print(f"{part:52}" + "".join(f"{each:15.1f}" for each in spent))
    print(f"{'one update':52}" + "".join(f"{times[-1]:15.1f}" for times in columns.values()))
    print(f"({time.perf_counter() - start:.0f} s)")
