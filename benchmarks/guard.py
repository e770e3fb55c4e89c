"""`make bench-guard`: has the learner become slower? Its speed is compared with that of a fixed computation.

Updates per second say little about another machine. So each agent is timed in turns with a plain JAX program
that never changes, and the ratio of their best rounds, which others disturbed least, is compared with the
recorded one. The command fails if an agent has lost more than a third. `--record` writes today's ratios to
recorded.json: do it on a quiet machine, and only with a reason.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp

from benchmarks import control, learner
from benchmarks.learner import STEPS, rate

RECORDED = Path(__file__).with_name("recorded.json")
ROUNDS, LOSS = 9, 1 / 3
FIXED = "the fixed computation"
GAMES, CONTROL = ("dqn", "qr_dqn", "rem"), ("td3",)


def fixed_computation() -> Callable[[], None]:
    """Gradient steps of a perceptron, written out: the same work whatever happens to Optimist."""
    sizes = (400, 128, 128, 600)
    keys = jax.random.split(jax.random.PRNGKey(0), len(sizes))
    weights = [
        jax.random.normal(key, shape) / shape[0] ** 0.5
        for key, shape in zip(keys, zip(sizes, sizes[1:], strict=False), strict=False)
    ]
    batch = jax.random.normal(keys[-1], (32, sizes[0]))

    def loss(weights):
        x = batch
        for weight in weights[:-1]:
            x = jax.nn.relu(x @ weight)
        return ((x @ weights[-1]) ** 2).mean()

    def step(weights, _):
        slopes = jax.grad(loss)(weights)
        return [weight - 1e-3 * slope for weight, slope in zip(weights, slopes, strict=True)], None

    program = jax.jit(lambda weights: jax.lax.scan(step, weights, jnp.arange(STEPS))[0])

    def chunk() -> None:
        jax.block_until_ready(program(weights))

    chunk()
    return chunk


def measured() -> dict[str, float]:
    """The speed of each agent as a share of the fixed computation's, both in their best round."""
    play, movements = learner.logged_play(), control.logged_play()
    parts = {name: (learner.ours(name, 1, play), learner.STEPS) for name in GAMES}
    parts |= {name: (control.ours(name, 1, movements), control.STEPS) for name in CONTROL}
    parts[FIXED] = fixed_computation(), STEPS
    rounds = [{name: rate(*part) for name, part in parts.items()} for _ in range(ROUNDS)]
    best = {name: max(one[name] for one in rounds) for name in parts}
    return {name: best[name] / best[FIXED] for name in (*GAMES, *CONTROL)}


def slower(recorded: Mapping[str, float], found: Mapping[str, float]) -> list[str]:
    """The agents that have lost more than a third."""
    return [name for name, before in recorded.items() if found[name] < (1 - LOSS) * before]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write today's ratios to recorded.json")
    options = parser.parse_args(words)
    machine = jax.default_backend()
    known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    found = measured()
    if options.record:
        known[machine] = {name: round(ratio, 4) for name, ratio in found.items()}
        RECORDED.write_text(json.dumps(known, indent=1) + "\n")
    if machine not in known:
        print(f"no ratios are recorded for a {machine}: measure a known good version with --record first")
        return 2
    recorded = known[machine]
    for name, ratio in found.items():
        print(f"{name:8} {ratio:7.4f} of the fixed computation, recorded {recorded[name]:7.4f}")
    lost = slower(recorded, found)
    print(f"slower by more than a third: {', '.join(lost)}" if lost else "no agent has lost a third")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
