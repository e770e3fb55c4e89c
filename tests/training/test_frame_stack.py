"""A stack holds a lane's last frames, oldest first, and nothing from before its episode."""

import numpy as np
import pytest

from optimist.data.transition import Spec
from optimist.training.play.acting import blank, pushed


def stacked_by_hand(episode, depth):
    """The last `depth` frames of one lane's episode so far, joined with a plain loop."""
    frames = [np.zeros_like(episode[0])] * depth + episode
    return np.concatenate(frames[-depth:], axis=-1)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize(("shape", "dtype"), [((5, 4, 2), "uint8"), ((3,), "float32"), ((5, 4, 1), "bool")])
def test_stacks_equal_a_plain_loop(shape, dtype, depth):
    rng, lanes = np.random.default_rng(0), 3
    frames = rng.integers(0, 255, (20, lanes, *shape)).astype(dtype)
    ended = rng.random((20, lanes)) < 0.2
    seen = pushed(blank(Spec(shape, dtype, actions=2, stack=depth), lanes), frames[0], np.ones(lanes, bool))
    episodes = [[frame] for frame in frames[0]]
    kept = [(seen, [stacked_by_hand(episode, depth) for episode in episodes])]
    for now, over in zip(frames[1:], ended[1:], strict=True):
        episodes = [[f] if o else [*e, f] for e, f, o in zip(episodes, now, over, strict=True)]
        seen = pushed(seen, now, over)
        kept.append((seen, [stacked_by_hand(episode, depth) for episode in episodes]))
    for result, expected in kept:
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)
