"""Torsos turn an observation into features: the package's torsos, and how a user's own is found."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from optimist import plugins
from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.networks.layers import Layer, initial_weight, sizes, widths


class Torso(Protocol):
    """The network below a table or dense layers: any class with these three methods, named as module:Name."""

    def init(self, key, observation_shape: tuple[int, ...], initializer: str) -> Any:
        """Initial parameters, any tree of arrays; `initializer` is a kind of `initial_weight`."""
        ...

    def features(self, observation_shape: tuple[int, ...]) -> int:
        """The number of features."""
        ...

    def __call__(self, params: Any, observation) -> Any:
        """One observation as recorded -> features (F,)."""
        ...


@dataclass(frozen=True)
class Network:
    """The settings of the network of an agent that reads tables."""

    torso: Annotated[str, "mlp, minatar, nature, linear, module:Name, or auto: by the observations"] = "auto"
    hidden: Annotated[str, "widths of the dense layers, as 256,256; auto: the torso's default"] = "auto"

    def __post_init__(self):
        if isinstance(self.torso, type):
            object.__setattr__(self, "torso", plugins.address("torsos", self.torso))
        object.__setattr__(self, "hidden", "auto" if self.hidden in ("auto", None) else widths(self.hidden))


class Convolution(NamedTuple):
    """A square convolution; `size` is a multiple of `stride`."""

    channels: int
    size: int
    stride: int = 1
    padding: str = "SAME"


def convolve(layer: Layer, image, convolution: Convolution):
    """(H, W, C) -> (H', W', channels), as one matrix product.

    Moving each stride x stride block into the channels turns a strided convolution into one of stride 1 with
    a kernel of size/stride. The numbers are the same, and the shape is fast on GPUs and on CPUs, whose
    convolutions inside a scan are 15 times slower.
    """
    size, stride = convolution.size, convolution.stride
    margins = [(*_padding(length, convolution), 0) for length in image.shape[:2]]
    image = jax.lax.pad(image, jnp.zeros((), image.dtype), [*margins, (0, 0, 0)])  # a negative margin crops
    blocks, reach = _blocks(image, stride), size // stride
    height, width = blocks.shape[0] - reach + 1, blocks.shape[1] - reach + 1
    windows = [blocks[i : i + height, j : j + width] for i in range(reach) for j in range(reach)]
    kernel = layer.weight.reshape(reach, stride, reach, stride, -1, convolution.channels)
    kernel = kernel.transpose(0, 2, 1, 3, 4, 5).reshape(-1, convolution.channels)
    return jnp.concatenate(windows, axis=-1) @ kernel + jnp.broadcast_to(
        layer.bias, (height, width, layer.bias.size)
    )


def _padding(length: int, convolution: Convolution) -> tuple[int, int]:
    """How many zeros to add before and after so that whole blocks remain; negative: rows to remove."""
    _, size, stride, padding = convolution
    if padding == "VALID":
        windows, before = (length - size) // stride + 1, 0
    else:
        windows = -(-length // stride)
        before = max((windows - 1) * stride + size - length, 0) // 2
    return before, (windows - 1) * stride + size - length - before


def _blocks(image, stride: int):
    """(H, W, C) -> (H/s, W/s, s*s*C)."""
    height, width, channels = image.shape
    split = image.reshape(height // stride, stride, width // stride, stride, channels)
    return split.transpose(0, 2, 1, 3, 4).reshape(height // stride, width // stride, -1)


@dataclass(frozen=True)
class LayeredTorso:
    """Convolutions, then dense layers, each followed by a ReLU."""

    convolutions: tuple[Convolution, ...] = ()
    hidden: tuple[int, ...] = (64, 64)

    def init(self, key, observation_shape: tuple[int, ...], initializer: str) -> list[Layer]:
        shapes = self.shapes(observation_shape)
        keys = jax.random.split(key, len(shapes))
        weights = [initial_weight(k, shape, initializer) for k, shape in zip(keys, shapes, strict=True)]
        return [Layer(weight, jnp.zeros(weight.shape[-1])) for weight in weights]

    def shapes(self, observation_shape: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shape of every weight."""
        found: list[tuple[int, ...]] = []
        if self.convolutions:
            height, width, inputs = observation_shape
            for channels, size, stride, padding in self.convolutions:
                found.append((size, size, inputs, channels))
                cut = size - 1 if padding == "VALID" else 0
                height, width, inputs = -(-(height - cut) // stride), -(-(width - cut) // stride), channels
            observation_shape = (height, width, inputs)
        widths = (math.prod(observation_shape), *self.hidden)
        return found + list(zip(widths[:-1], widths[1:], strict=True))

    def features(self, observation_shape: tuple[int, ...]) -> int:
        shapes = self.shapes(observation_shape)
        return shapes[-1][-1] if shapes else math.prod(observation_shape)

    def __call__(self, params: list[Layer], observation):
        """observation -> features (hidden[-1],)."""
        x = observation / 255 if observation.dtype == jnp.uint8 else observation
        x = x.astype(jnp.float32)
        images, dense = params[: len(self.convolutions)], params[len(self.convolutions) :]
        for layer, convolution in zip(images, self.convolutions, strict=True):
            x = jax.nn.relu(convolve(layer, x, convolution))
        x = x.reshape(-1)
        for layer in dense:
            x = jax.nn.relu(x @ layer.weight + layer.bias)
        return x


TORSOS = {
    "linear": LayeredTorso(hidden=()),  # the observation itself; one-hot states give a table of values
    "mlp": LayeredTorso(hidden=(64, 64)),
    # Young and Tian 2019: one small convolution is enough for 10 x 10 cells.
    "minatar": LayeredTorso((Convolution(16, 3, 1, "VALID"),), hidden=(128,)),
    # Mnih et al. 2015, but with the SAME padding of Agarwal et al.'s code: 11 * 11 * 64 = 7,744 features
    # before the dense layer; most other implementations have 3,136.
    "nature": LayeredTorso(
        (Convolution(32, 8, 4), Convolution(64, 4, 2), Convolution(64, 3, 1)), hidden=(512,)
    ),
}


def torso_for(spec: Spec, name: str = "auto", hidden: str = "auto") -> Torso:
    """The named torso, or for "auto" the one for such observations, with dense layers of these widths."""
    image = len(spec.observation_shape) == 3
    if name == "auto":
        name = "mlp" if not image else "nature" if min(spec.observation_shape[:2]) >= 36 else "minatar"
    if name in TORSOS and TORSOS[name].convolutions and not image:
        raise UsageError(
            f'the "{name}" network needs images; these observations are {spec.observation_shape}: use "mlp"'
        )
    return named_torso(name, **({} if hidden == "auto" else {"hidden": sizes(hidden)}))


def named_torso(name: str, **options: Any) -> Torso:
    """The torso of this name with these options: the package's, or a user's class or instance."""
    if name in TORSOS:
        return replace(TORSOS[name], **options) if options else TORSOS[name]
    found = plugins.find("torsos", name, [*TORSOS, "auto"])
    try:
        found = found(**options) if isinstance(found, type) or options else found
    except TypeError as problem:
        raise UsageError(f"{name} cannot be made with {options or 'its defaults'}: {problem}") from problem
    if not all(callable(getattr(found, part, None)) for part in ("init", "features", "__call__")):
        raise UsageError(f"{name} is not a torso: it needs init, features and __call__")
    return found
