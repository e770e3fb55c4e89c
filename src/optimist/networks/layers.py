"""One dense or convolutional layer and its initial weights; the widths of several layers as a string."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.errors import UsageError, did_you_mean


class Layer(NamedTuple):
    weight: Any
    bias: Any


class NormedLayer(NamedTuple):
    """A layer whose numbers, after the ReLU, get mean 0 and variance 1, then a learned gain and shift."""

    weight: Any
    bias: Any
    gain: Any
    shift: Any


def numbers(observation):
    """What a layer multiplies: bytes as numbers from 0 to 1, anything else as it is, in float32."""
    x = observation / 255 if observation.dtype == jnp.uint8 else observation
    return x.astype(jnp.float32)


def initial_weight(key, shape: tuple[int, ...], initializer: str):
    """Uniform weights (..., inputs, outputs); leading axes are the window of a convolution.

    "glorot" is Keras' default, used by DQN; "fan_in" is variance scaling by 1/sqrt(3), used by every
    multi-headed network of the paper's code; "torch" is PyTorch's default, used by the actor-critics.
    """
    window = math.prod(shape[:-2])
    fan_in, fan_out = window * shape[-2], window * shape[-1]
    limits = {
        "glorot": math.sqrt(6 / (fan_in + fan_out)),
        "fan_in": math.sqrt(math.sqrt(3) / fan_in),
        "torch": math.sqrt(1 / fan_in),
    }
    if initializer not in limits:
        raise UsageError(f'unknown initializer "{initializer}": {did_you_mean(initializer, limits)}')
    return jax.random.uniform(key, shape, minval=-limits[initializer], maxval=limits[initializer])


def widths(hidden: str | Iterable[int]) -> str:
    """The widths of layers as one string, "400,300", from a string or a tuple."""
    parts = hidden.split(",") if isinstance(hidden, str) else [str(w) for w in hidden]
    if not parts or not all(part.strip().isdecimal() and int(part) for part in parts):
        raise UsageError(f'hidden layers are "{hidden}": write their widths as 400,300')
    return ",".join(str(int(part)) for part in parts)


def sizes(hidden: str) -> tuple[int, ...]:
    return tuple(map(int, widths(hidden).split(",")))
