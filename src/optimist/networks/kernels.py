"""How a kernel of our own is called: through Pallas, which compiles it with Triton."""

import jax


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
    """On a CPU, which has no such kernels; only tests come here."""
    return jax.default_backend() == "cpu"


def pallas():
    """Imported on use: it takes a third of a second, and only GPUs need it."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    return pallas, triton
