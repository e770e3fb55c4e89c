"""Torsos turn an observation into features; tables turn features into one value per action and column.

Everything is written for one observation; `vmap` adds batches, seeds and ensembles.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.data.transition import Spec
from optimist.errors import UsageError, did_you_mean


class Layer(NamedTuple):
    weight: Any
    bias: Any


class Convolution(NamedTuple):
    """A square convolution; `size` is a multiple of `stride`."""

    channels: int
    size: int
    stride: int = 1
    padding: str = "SAME"


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


def convolve(layer: Layer, image, convolution: Convolution):
    """(H, W, C) -> (H', W', channels), as one matrix product.

    Moving each stride x stride block into the channels turns a strided convolution into one of stride 1 with
    a kernel of size/stride: the same numbers in a shape that is fast on CPUs (whose convolutions inside a
    scan are 15 times slower) and on GPUs.
    """
    _, size, stride, padding = convolution
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
    """Zeros before and after (or, negative, rows too many for a window), so that whole blocks remain."""
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
class Torso:
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

    def __call__(self, layers: list[Layer], observation):
        """observation -> features (hidden[-1],)."""
        x = observation / 255 if observation.dtype == jnp.uint8 else observation
        x = x.astype(jnp.float32)
        images, dense = layers[: len(self.convolutions)], layers[len(self.convolutions) :]
        for layer, convolution in zip(images, self.convolutions, strict=True):
            x = jax.nn.relu(convolve(layer, x, convolution))
        x = x.reshape(-1)
        for layer in dense:
            x = jax.nn.relu(x @ layer.weight + layer.bias)
        return x


TORSOS = {
    "linear": Torso(hidden=()),  # the observation itself: with one-hot states, a table of values
    "mlp": Torso(hidden=(64, 64)),
    # Young and Tian 2019: one small convolution is enough for 10 x 10 cells.
    "minatar": Torso((Convolution(16, 3, 1, "VALID"),), hidden=(128,)),
    # Mnih et al. 2015, but with the SAME padding of the paper's code: 11 * 11 * 64 = 7,744 features before
    # the dense layer, where the usual ports have 3,136.
    "nature": Torso((Convolution(32, 8, 4), Convolution(64, 4, 2), Convolution(64, 3, 1)), hidden=(512,)),
}


def torso_for(spec: Spec, name: str = "auto") -> Torso:
    """The named torso, or the one that suits the observations."""
    image = len(spec.observation_shape) == 3
    if name == "auto":
        name = "mlp" if not image else "nature" if min(spec.observation_shape[:2]) >= 36 else "minatar"
    if name not in TORSOS:
        raise UsageError(f'unknown network "{name}": {did_you_mean(name, [*TORSOS, "auto"])}')
    if TORSOS[name].convolutions and not image:
        raise UsageError(
            f'the "{name}" network needs images, these observations are {spec.observation_shape}: use "mlp"'
        )
    return TORSOS[name]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
    """One value per action and column, left unmultiplied until asked.

    The last layer is linear, so a mixture of columns is a column with mixed weights, and 200 mixed heads cost
    about what one costs: (f . W) @ alpha == f . (W @ alpha).
    """

    features: Any  # (F,)
    weight: Any  # (F, A, K)
    bias: Any  # (A, K)

    def __matmul__(self, alpha):
        """Mix the columns: (K,) -> (A,), or several mixtures at once, (K, M) -> (A, M)."""
        return jnp.tensordot(self.features, self.weight @ alpha, axes=1) + self.bias @ alpha

    def mean(self):
        """The plain mean of the columns, (A,)."""
        columns = self.bias.shape[-1]
        return self @ jnp.full(columns, 1 / columns)

    def columns(self):
        """Every value, (A, K)."""
        return jnp.tensordot(self.features, self.weight, axes=1) + self.bias


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SplitTable:
    """A table whose columns are shared out among separate networks, each with features of its own."""

    parts: Table  # every leaf with a leading axis of networks

    def __matmul__(self, alpha):
        """Mix the columns of all networks: (K, ...) -> (A, ...)."""
        networks, _, _, columns = self.parts.weight.shape
        shares = alpha.reshape(networks, columns, *alpha.shape[1:])
        return jax.vmap(Table.__matmul__)(self.parts, shares).sum(axis=0)

    def mean(self):
        columns = self.parts.bias.shape[0] * self.parts.bias.shape[-1]
        return self @ jnp.full(columns, 1 / columns)

    def columns(self):
        """Every value, (A, K), network after network."""
        values = jax.vmap(Table.columns)(self.parts)
        return values.transpose(1, 0, 2).reshape(values.shape[1], -1)


@dataclass(frozen=True)
class MultiHead:
    """One torso under a linear layer that is a table."""

    torso: Torso
    actions: int
    columns: int
    initializer: str
    spread: float | None = None  # heads start as one shared head plus this much of a draw of their own

    def init(self, key, observation_shape: tuple[int, ...]) -> dict:
        torso_key, head_key = jax.random.split(key)
        shapes = self.torso.shapes(observation_shape)
        features = shapes[-1][-1] if shapes else math.prod(observation_shape)
        return {
            "torso": self.torso.init(torso_key, observation_shape, self.initializer),
            "weight": self._heads(head_key, features),
            "bias": jnp.zeros((self.actions, self.columns)),
        }

    def _heads(self, key, features: int) -> Any:
        """(features, actions, columns). The mean of K independent heads is 1/sqrt(K) of one, and so is the
        gradient that reaches the torso through it; a shared start keeps it at the size of one."""

        def drawn(key, columns: int):
            weight = initial_weight(key, (features, self.actions * columns), self.initializer)
            return weight.reshape(features, self.actions, columns)

        if self.spread is None:
            return drawn(key, self.columns)
        shared_key, own_key = jax.random.split(key)
        shared = jnp.broadcast_to(drawn(shared_key, 1), (features, self.actions, self.columns))
        return shared + self.spread * drawn(own_key, self.columns)

    def __call__(self, params: dict, observation) -> Table:
        return Table(self.torso(params["torso"], observation), params["weight"], params["bias"])


@dataclass(frozen=True)
class MultiNetwork:
    """Separate networks, trained in one program, that share out the columns of a table."""

    network: MultiHead
    count: int

    def init(self, key, observation_shape: tuple[int, ...]) -> dict:
        keys = jax.random.split(key, self.count)
        return jax.vmap(lambda one: self.network.init(one, observation_shape))(keys)

    def __call__(self, params: dict, observation) -> SplitTable:
        return SplitTable(jax.vmap(self.network, in_axes=(0, None))(params, observation))


@dataclass(frozen=True)
class Perceptron:
    """Dense layers with a ReLU between them, and PyTorch's initial weights and biases."""

    hidden: tuple[int, ...]
    outputs: int
    late: bool = False  # the last part of the input enters at the second layer

    def init(self, key, *parts: int) -> list[Layer]:
        """`parts` are the widths of the parts of the input."""
        early, late = (parts[:-1], parts[-1]) if self.late else (parts, 0)
        widths = (sum(early), *self.hidden, self.outputs)
        pairs = list(zip(widths[:-1], widths[1:], strict=True))
        pairs[1:2] = [(inputs + late, outputs) for inputs, outputs in pairs[1:2]]
        keys = jax.random.split(key, len(pairs))
        return [self._layer(k, *pair) for k, pair in zip(keys, pairs, strict=True)]

    @staticmethod
    def _layer(key, inputs: int, outputs: int) -> Layer:
        drawn = initial_weight(key, (inputs + 1, outputs), "torch") * math.sqrt((inputs + 1) / inputs)
        return Layer(weight=drawn[:-1], bias=drawn[-1])

    def __call__(self, layers: list[Layer], *parts):
        """The parts of the input, side by side -> (outputs,)."""
        early, late = (parts[:-1], parts[-1:]) if self.late else (parts, ())
        x = jnp.concatenate(early)
        for number, layer in enumerate(layers):
            x = jnp.concatenate([x, *late]) if number == 1 and late else x
            x = x @ layer.weight + layer.bias
            x = jax.nn.relu(x) if number < len(layers) - 1 else x
        return x


@dataclass(frozen=True)
class ActionVae:
    """A variational auto-encoder of actions in [-1, 1] that are likely after an observation."""

    actions: int
    hidden: tuple[int, ...] = (750, 750)

    @property
    def latent(self) -> int:
        return 2 * self.actions

    def init(self, key, observation: int) -> dict:
        code_key, action_key = jax.random.split(key)
        return {
            "encoder": self._encoder.init(code_key, observation + self.actions),
            "decoder": self._decoder.init(action_key, observation + self.latent),
        }

    @property
    def _encoder(self) -> Perceptron:
        return Perceptron(self.hidden, 2 * self.latent)

    @property
    def _decoder(self) -> Perceptron:
        return Perceptron(self.hidden, self.actions)

    def encode(self, params: dict, observation, action):
        """The mean and the standard deviation of the code, (latent,) each."""
        mean, log_deviation = jnp.split(self._encoder(params["encoder"], observation, action), 2)
        deviation = jnp.exp(jnp.clip(log_deviation, -4, 15))  # as the authors: it stays a number
        return mean, deviation

    def decode(self, params: dict, observation, code):
        return jnp.tanh(self._decoder(params["decoder"], observation, code))
