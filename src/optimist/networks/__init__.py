"""Networks, written for one observation; `vmap` adds batches, seeds and ensembles."""

from optimist.networks.layers import Layer, initial_weight
from optimist.networks.perceptrons import ActionVae, Perceptron
from optimist.networks.tables import MultiHead, MultiNetwork, SplitTable, Table
from optimist.networks.torsos import TORSOS, Convolution, Torso, convolve, torso_for

__all__ = [
    "TORSOS",
    "ActionVae",
    "Convolution",
    "Layer",
    "MultiHead",
    "MultiNetwork",
    "Perceptron",
    "SplitTable",
    "Table",
    "Torso",
    "convolve",
    "initial_weight",
    "torso_for",
]
