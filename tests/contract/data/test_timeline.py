"""One function stacks frames of NumPy and JAX: both give the same bytes as a loop."""

import jax.numpy as jnp
import numpy as np
import pytest

from optimist.data.timeline import earlier, stacked

SHAPES = {
    "grey": ((6, 5, 1), np.uint8, 4),
    "colours": ((6, 5, 3), np.uint8, 4),
    "three": ((6, 5, 1), np.uint8, 3),
    "flags": ((4, 4, 2), bool, 2),
    "vectors": ((7,), np.float32, 4),
    "alone": ((7,), np.float32, 1),
}


@pytest.mark.parametrize("library", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize("name", SHAPES)
def test_stacks_are_those_of_a_loop(name, library):
    shape, dtype, stack = SHAPES[name]
    frames = np.random.default_rng(0).integers(0, 256, (20, *shape)).astype(dtype)
    frame, age = np.arange(20), np.minimum(np.arange(20) % 6, stack - 1)
    wanted = [
        np.concatenate(
            [frames[i - back] if back <= age[i] else np.zeros(shape, dtype) for back in range(stack)][::-1],
            axis=-1,
        )
        for i in frame
    ]
    here, numbers, ages = library.asarray(frames), library.asarray(frame), library.asarray(age)
    found = stacked(lambda back: here[earlier(numbers, ages, back)], ages, stack)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.stack(wanted))
