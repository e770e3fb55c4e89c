"""Observations are vectors or images of a known layout, alike by every door."""

import numpy as np
import pytest

from doors import assert_refused, log

pytestmark = pytest.mark.usefixtures("quick_disk")


def images(*shape, dtype=np.uint8):
    return np.random.default_rng(0).integers(0, 2 if dtype is bool else 256, (6, *shape)).astype(dtype)


AMBIGUOUS = images(9, 8, 10)


@pytest.mark.parametrize(
    ("given", "shape", "dtype", "channels_first"),
    [
        ({"observations": images(84, 84)}, (84, 84, 1), "uint8", False),
        ({"observations": images(84, 84, dtype=bool)}, (84, 84, 1), "bool", False),
        ({"observations": images(9, 9) / 255, "channels": "last"}, (9, 9, 1), "float32", False),
        ({"observations": images(3, 84, 84)}, (84, 84, 3), "uint8", True),
        ({"observations": images(84, 84, 3)}, (84, 84, 3), "uint8", False),
        ({"observations": images(9, 9, 3).astype(np.int32)}, (9, 9, 3), "uint8", False),
        ({"observations": AMBIGUOUS, "channels": "first"}, (8, 10, 9), "uint8", True),
        ({"observations": AMBIGUOUS, "channels": "last"}, (9, 8, 10), "uint8", False),
        ({"observations": np.arange(12).reshape(6, 2) * 100_000}, (2,), "float32", False),
    ],
)
def test_the_layout_is_seen_or_said(door, given, shape, dtype, channels_first):
    data, pixels = door(**log(**given)), given["observations"]
    spec = data.spec
    assert (spec.frame_shape, spec.frame_dtype, spec.channels_first) == (shape, dtype, channels_first)
    wanted = np.moveaxis(pixels, 1, -1) if channels_first else pixels.reshape(6, *shape)
    np.testing.assert_array_equal(data.timeline.frames(1), wanted[1].astype(dtype))
    np.testing.assert_array_equal(data.observation(1).ravel(), pixels[1].ravel().astype(dtype))


def test_observations_have_the_layout_that_the_caller_gave(door):
    """All sides of a cube are equal, so no policy could tell a turned one."""
    pixels = images(8, 8, 8)
    data = door(**log(observations=pixels), channels="first", stack=2)
    np.testing.assert_array_equal(data.observation(1), np.concatenate(pixels[:2]))
    np.testing.assert_array_equal(data.episodes[0].frames[:3], pixels[:3])
    np.testing.assert_array_equal(data.episodes[0].observations[2], np.concatenate(pixels[1:3]))
    np.testing.assert_array_equal([*data.episodes[0]][1].next_observation, np.concatenate(pixels[1:3]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observations": np.array([["a"]] * 6)}, "type <U1"),
        ({"observations": np.zeros((6, 9, 9))}, 'give channels="last" if they are images of one channel'),
        ({"observations": np.zeros((6, 9, 9, 9), np.uint8)}, 'channels="first" if they are .n, c, h, w'),
        ({"observations": np.zeros((6, 3, 9, 3), np.uint8)}, 'channels="first" if they are .n, c, h, w'),
        ({"channels": "middle"}, 'channels="middle": give "first"'),
        ({"channels": "first"}, "channels= is for images"),
        ({"stack": 0}, "stack"),
    ],
)
def test_observations_that_do_not_fit_are_refused_in_one_line(door, changes, said):
    assert_refused(door, log(**changes), said)
