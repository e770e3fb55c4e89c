"""Calls our own GPU kernels through Pallas, which compiles them with Triton."""

import logging
from functools import cache

import jax

SMALLEST_SIDE = 16  # of a product in the matrix units
NEEDED = ("CompilerParams", "load", "store")  # of Pallas' Triton part
log = logging.getLogger("optimist")


@cache  # said once
def can_compile() -> bool:
    """Does the installed JAX still have Pallas' Triton part? JAX 0.11 calls it deprecated."""
    try:
        _, triton = pallas()
    except ImportError:
        triton = None
    if all(hasattr(triton, name) for name in NEEDED):
        return True
    log.warning(
        "JAX %s cannot compile the kernels of --precision bf16, so products are in tf32: "
        'pip install "jax<0.12" for the kernels',
        jax.__version__,
    )
    return False


def is_side(number: int) -> bool:
    """Whether the matrix units take so many numbers on one side of a product: powers of two, from 16 on."""
    return number >= SMALLEST_SIDE and number & (number - 1) == 0


def kernel_call(kernel, out, grid: tuple[int, ...]):
    """The kernel as a function of arrays, with one program for each place of the grid."""
    pl, triton = pallas()
    return pl.pallas_call(
        kernel,
        out_shape=out,
        grid=grid,
        interpret=interpreted(),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=3),
    )


def interpreted() -> bool:
    """Is the kernel interpreted? So it is on a CPU, which only tests use."""
    return jax.default_backend() == "cpu"


def pallas():
    """Pallas and its Triton part, imported on use: it takes a third of a second, and only GPUs need it."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    return pallas, triton
