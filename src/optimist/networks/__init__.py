"""Networks, written for one observation; `vmap` adds batches, seeds and ensembles."""

from optimist.networks.convolutions import Convolution, convolve
from optimist.networks.layers import Layer, initial_weight, sizes, widths
from optimist.networks.perceptrons import ActionVae, DenseNetwork, Perceptron
from optimist.networks.tables import AllowedTable, AnyTable, MultiHead, MultiNetwork, SplitTable, Table
from optimist.networks.torsos import TORSOS, LayeredTorso, Network, Torso, named_torso, torso_for

__all__ = [
    "TORSOS",
    "ActionVae",
    "AllowedTable",
    "AnyTable",
    "Convolution",
    "DenseNetwork",
    "Layer",
    "LayeredTorso",
    "MultiHead",
    "MultiNetwork",
    "Network",
    "Perceptron",
    "SplitTable",
    "Table",
    "Torso",
    "convolve",
    "initial_weight",
    "named_torso",
    "sizes",
    "torso_for",
    "widths",
]
