"""Gauges: programs that do only arithmetic or only memory traffic. Their rates limit the other programs."""

import math
from functools import cache

import jax
import jax.numpy as jnp

from optimist.studies.bench.timing import Gauge

LARGE = 256 * 2**20  # bytes; larger than the cache of any CPU
SMALL = 2**16


@cache
def arithmetic() -> Gauge:
    """Floating-point operations of a large product of float32 matrices."""
    size, times = (1024, 1) if jax.default_backend() == "cpu" else (8192, 20)
    matrix = jnp.full((size, size), 1 / size)
    program = jax.jit(lambda x: jax.lax.fori_loop(0, times, lambda _, y: y @ x, x))

    def do() -> int:
        jax.block_until_ready(program(matrix))
        return 2 * size**3 * times

    return Gauge("arithmetic", do)


def memory(size: int) -> Gauge:
    """Bytes read and written by passes over an array of about `size` bytes.

    The size matters: an array that fits into a cache is faster."""
    return _memory(round(math.log2(min(max(size, SMALL), LARGE))))


@cache
def _memory(exponent: int) -> Gauge:
    count = 2**exponent // 4
    times = LARGE // (4 * count)

    def passes(array):
        return jax.lax.fori_loop(0, times, lambda _, x: x * 0.999 + 0.001, array)

    program, array = jax.jit(passes), jnp.ones(count)

    def do() -> int:
        jax.block_until_ready(program(array))
        return 2 * 4 * count * times

    return Gauge("memory", do)
