"""The precision of products on a GPU, while an agent learns. Weights, moments and sums are always float32.

`float32` multiplies float32 numbers exactly. `tf32` is JAX's default on a GPU: it rounds factors to 10
bits. `bf16` rounds the factors in a torso to 7 bits and stores its images and features as bf16, in half the
bytes; heads are as in tf32. Other platforms ignore the setting and multiply float32 numbers.

bf16 is by kernels of our own. Pallas compiles them with Triton, a part that JAX 0.11 calls deprecated.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax

from optimist.errors import UsageError, did_you_mean

PRECISIONS = ("float32", "tf32", "bf16")
PRECISION = "of products while learning, on a GPU: float32, tf32, or bf16 in the torso, which is the fastest"
_torsos = ContextVar("precision of torsos", default="tf32")
SMALLEST_SIDE = 16  # of a product in the matrix units


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise UsageError(f'no precision "{precision}": {did_you_mean(str(precision), PRECISIONS)}')


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """A context: functions that are traced inside it multiply with this precision."""
    before = _torsos.set(precision)
    try:
        if precision == "float32" and _on_gpu():
            with jax.default_matmul_precision("float32"):
                yield
        else:
            yield
    finally:
        _torsos.reset(before)


def in_bf16() -> bool:
    """Whether torsos round to bf16."""
    return _torsos.get() == "bf16" and _on_gpu()


def _on_gpu() -> bool:
    return jax.default_backend() == "gpu"


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
