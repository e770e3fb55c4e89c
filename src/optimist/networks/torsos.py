"""Torsos turn an observation into features: the package's torsos, and how a user's own is found."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import jax
import jax.numpy as jnp

from optimist import plugins
from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.networks.convolutions import Convolution, convolve, convolve_by_rows, rows_pay
from optimist.networks.layers import Layer, initial_weight, numbers, sizes, widths
from optimist.networks.precision import in_bf16


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
    """The settings of the network of an agent for discrete actions."""

    torso: Annotated[str, "mlp, minatar, nature, linear, module:Name, or auto: by the observations"] = "auto"
    hidden: Annotated[str, "widths of the dense layers, as 256,256; auto: the torso's default"] = "auto"

    def __post_init__(self):
        if isinstance(self.torso, type):
            object.__setattr__(self, "torso", plugins.address("torsos", self.torso))
        object.__setattr__(self, "hidden", "auto" if self.hidden in ("auto", None) else widths(self.hidden))


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
        if not in_bf16():
            return self.plain(params, observation)
        from optimist.networks.rounded import rounded_features  # only GPUs need it

        return rounded_features(self, params, observation)

    def plain(self, params: list[Layer], observation):
        """The features in float32, by matrix products."""
        x = observation if observation.dtype == jnp.uint8 else numbers(observation)
        images, dense = params[: len(self.convolutions)], params[len(self.convolutions) :]
        for layer, convolution in zip(images, self.convolutions, strict=True):
            if rows_pay(x.shape, convolution):
                x = convolve_by_rows(layer, x, convolution)
            else:
                x = convolve(layer, numbers(x), convolution)
            x = jax.nn.relu(x)
        x = numbers(x).reshape(-1)
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
