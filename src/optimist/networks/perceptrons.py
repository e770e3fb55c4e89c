"""The networks of agents for action vectors."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

import jax
import jax.numpy as jnp

from optimist import plugins
from optimist.networks.layers import Layer, NormedLayer, initial_weight, numbers, widths
from optimist.networks.torsos import Torso


@dataclass(frozen=True)
class DenseNetwork:
    """The settings of the networks of an agent for action vectors."""

    hidden: Annotated[str, "widths of the layers of every network, as 400,300"] = "400,300"
    torso: Annotated[str | None, "below these layers of every network: mlp, module:Name, or none"] = None

    def __post_init__(self):
        if isinstance(self.torso, type):
            object.__setattr__(self, "torso", plugins.address("torsos", self.torso))
        if self.torso in ("auto", "none"):
            object.__setattr__(self, "torso", None)
        object.__setattr__(self, "hidden", widths(self.hidden))


@dataclass(frozen=True)
class Perceptron:
    """Dense layers with ReLUs between them, and with PyTorch's initial weights and biases."""

    hidden: tuple[int, ...]
    outputs: int
    late: bool = False  # the last part of the input enters at the second layer
    normed: bool = False  # layer normalisation (Ba et al. 2016) after each ReLU
    torso: Torso | None = None  # the first part of the input is replaced by its features

    def init(self, key, *parts: int) -> Any:
        """The layers, and those of a torso, if there is one; `parts` are the widths of the input."""
        if self.torso is not None:
            torso_key, layers_key = jax.random.split(key)
            layers, shape = replace(self, torso=None), parts[:1]
            return {
                "torso": self.torso.init(torso_key, shape, "torch"),
                "layers": layers.init(layers_key, self.torso.features(shape), *parts[1:]),
            }
        early, late = (parts[:-1], parts[-1]) if self.late else (parts, 0)
        widths = (sum(early), *self.hidden, self.outputs)
        pairs = list(zip(widths[:-1], widths[1:], strict=True))
        pairs[1:2] = [(inputs + late, outputs) for inputs, outputs in pairs[1:2]]
        keys = jax.random.split(key, len(pairs))
        *hidden, last = [self._layer(k, *pair) for k, pair in zip(keys, pairs, strict=True)]
        if not self.normed:
            return [*hidden, last]
        return [*(NormedLayer(*each, jnp.ones_like(each.bias), 0 * each.bias) for each in hidden), last]

    @staticmethod
    def _layer(key, inputs: int, outputs: int) -> Layer:
        drawn = initial_weight(key, (inputs + 1, outputs), "torch") * math.sqrt((inputs + 1) / inputs)
        return Layer(weight=drawn[:-1], bias=drawn[-1])

    def __call__(self, layers: Any, *parts):
        """The parts of the input, concatenated -> (outputs,)."""
        if self.torso is not None:
            features = self.torso(layers["torso"], parts[0])
            return replace(self, torso=None)(layers["layers"], features, *parts[1:])
        early, late = (parts[:-1], parts[-1:]) if self.late else (parts, ())
        x = jnp.concatenate([numbers(part) for part in early])
        for number, layer in enumerate(layers):
            x = jnp.concatenate([x, *late]) if number == 1 and late else x
            x = x @ layer.weight + layer.bias
            x = jax.nn.relu(x) if number < len(layers) - 1 else x
            x = _normed(x, layer) if isinstance(layer, NormedLayer) else x
        return x


def _normed(x, layer: NormedLayer):
    spread = jnp.sqrt(x.var() + 1e-6)  # flax's constant, as in ReBRAC's code
    return (x - x.mean()) / spread * layer.gain + layer.shift


@dataclass(frozen=True)
class ActionVae:
    """A variational auto-encoder of actions in [-1, 1], given an observation."""

    actions: int
    hidden: tuple[int, ...] = (750, 750)
    torso: Torso | None = None

    @property
    def latent(self) -> int:
        return 2 * self.actions

    def init(self, key, observation: int) -> dict:
        code_key, action_key = jax.random.split(key)
        return {
            "encoder": self._network(2 * self.latent).init(code_key, observation, self.actions),
            "decoder": self._network(self.actions).init(action_key, observation, self.latent),
        }

    def _network(self, outputs: int) -> Perceptron:
        return Perceptron(self.hidden, outputs, torso=self.torso)

    def encode(self, params: dict, observation, action):
        """The mean and the standard deviation of the code, (latent,) each."""
        mean, log_deviation = jnp.split(
            self._network(2 * self.latent)(params["encoder"], observation, action), 2
        )
        deviation = jnp.exp(jnp.clip(log_deviation, -4, 15))  # as in the authors' code: it stays finite
        return mean, deviation

    def decode(self, params: dict, observation, code):
        return jnp.tanh(self._network(self.actions)(params["decoder"], observation, code))
