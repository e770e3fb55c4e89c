"""The precision of products on a GPU, while an agent learns. Weights, moments and sums are always float32.

`float32` multiplies float32 numbers exactly. `tf32` is JAX's default on a GPU: it rounds factors to 10
bits. `bf16` rounds the factors in a torso to 7 bits and stores its images and features as bf16, in half the
bytes; heads are as in tf32. Other platforms ignore the setting and multiply float32 numbers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax

from optimist.errors import UsageError, did_you_mean
from optimist.networks.kernels import can_compile

PRECISIONS = ("float32", "tf32", "bf16")
PRECISION = "of products while learning, on a GPU: float32, tf32, or bf16 in the torso, which is the fastest"
_torsos = ContextVar("precision of torsos", default="tf32")


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
    """Whether torsos round to bf16; without the kernels for that, they multiply in tf32."""
    return _torsos.get() == "bf16" and _on_gpu() and can_compile()


def _on_gpu() -> bool:
    return jax.default_backend() == "gpu"
