"""The networks are the paper's: the same convolutions, shapes, initial weights and scaling."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist import agents
from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.networks import (
    TORSOS,
    Convolution,
    DenseNetwork,
    Layer,
    LayeredTorso,
    MultiHead,
    MultiNetwork,
    Network,
    Perceptron,
    SplitTable,
    Table,
    convolve,
    initial_weight,
    torso_for,
)
from optimist.networks.convolutions import convolve_by_rows, joined_product

ATARI = Spec(frame_shape=(84, 84, 1), frame_dtype="uint8", actions=4, stack=4)
MINATAR = Spec(frame_shape=(10, 10, 4), frame_dtype="bool", actions=6)
CARTPOLE = Spec(frame_shape=(4,), frame_dtype="float32", actions=2)


def library_convolution(layer: Layer, image, convolution: Convolution):
    """The same layer by XLA's own convolution."""
    output = jax.lax.conv_general_dilated(
        image[None],
        layer.weight,
        window_strides=(convolution.stride, convolution.stride),
        padding=convolution.padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )[0]
    return output + layer.bias.reshape(1, 1, -1)


def random_layer(rng, convolution: Convolution, inputs: int) -> Layer:
    shape = (convolution.size, convolution.size, inputs, convolution.channels)
    weight = rng.normal(size=shape) / math.sqrt(math.prod(shape[:3]))
    return Layer(jnp.float32(weight), jnp.float32(rng.normal(size=convolution.channels)))


def assert_same_convolution(
    convolution: Convolution, shape: tuple[int, int, int], seed: int = 0, form: Callable = convolve
):
    """The outputs agree, and so do the gradients of weight, bias and image in a random direction."""
    rng = np.random.default_rng(seed)
    image = jnp.float32(rng.normal(size=shape))
    layer = random_layer(rng, convolution, shape[2])
    expected_shape = jax.eval_shape(lambda: library_convolution(layer, image, convolution)).shape
    direction = jnp.float32(rng.normal(size=expected_shape))

    def both_ways(function):
        output, pull = jax.vjp(lambda layer, image: function(layer, image, convolution), layer, image)
        return output, pull(direction)

    ours, theirs = jax.jit(lambda: (both_ways(form), both_ways(library_convolution)))()
    for mine, reference in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-4, atol=2e-5 * np.abs(reference).max())


CONVOLUTIONS = {
    f"{name}-{number}": convolution
    for name, torso in TORSOS.items()
    for number, convolution in enumerate(torso.convolutions)
}


@pytest.mark.parametrize("form", [convolve, convolve_by_rows])
@pytest.mark.parametrize("size", [(21, 21), (13, 8)], ids=str)
@pytest.mark.parametrize("convolution", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolve_is_the_librarys_convolution(convolution, size, form):
    assert_same_convolution(convolution, (*size, 3), form=form)


@st.composite
def convolved(draw) -> tuple[Convolution, tuple[int, int, int]]:
    """Any convolution, and the shape of an image for it."""
    stride, reach = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    size, padding = stride * reach, draw(st.sampled_from(["SAME", "VALID"]))
    height, width = draw(st.integers(1, 17)), draw(st.integers(1, 17))
    if padding == "VALID":  # an image of whole strides that holds at least one window
        height, width = (size + stride * (length // stride) for length in (height, width))
    convolution = Convolution(draw(st.integers(1, 3)), size, stride, padding)
    return convolution, (height, width, draw(st.integers(1, 4)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(convolved(), st.sampled_from([convolve, convolve_by_rows]))
def test_any_size_and_stride_is_the_librarys(subject, form):
    assert_same_convolution(*subject, form=form)


@pytest.mark.parametrize("form", [convolve, convolve_by_rows])
def test_a_valid_convolution_drops_the_rows_that_fill_no_window(form):
    assert_same_convolution(Convolution(2, 4, 2, "VALID"), (7, 9, 1), form=form)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(convolved())
def test_an_image_of_bytes_is_one_of_numbers_from_0_to_1(subject):
    (convolution, shape), rng = subject, np.random.default_rng(0)
    image = jnp.asarray(rng.integers(0, 256, shape), jnp.uint8)
    layer = random_layer(rng, convolution, shape[2])

    def both_ways(image):
        output, pull = jax.vjp(lambda layer: convolve_by_rows(layer, image, convolution), layer)
        return output, pull(output)

    found, expected = jax.jit(lambda: (both_ways(image), both_ways(image / 255)))()
    for mine, reference in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-4, atol=2e-5 * np.abs(reference).max())


def is_by_rows(torso: LayeredTorso, spec: Spec) -> bool:
    """Does the program of a torso have the product that joins the rows of all images?"""
    layers = jax.eval_shape(lambda: torso.init(jax.random.PRNGKey(0), spec.observation_shape, "glorot"))
    observation = jax.ShapeDtypeStruct(spec.observation_shape, spec.frame_dtype)
    return "joined_product" in str(jax.make_jaxpr(torso)(layers, observation))


def test_on_a_cpu_only_large_windows_are_multiplied_by_rows():
    assert is_by_rows(TORSOS["nature"], ATARI)
    assert not is_by_rows(TORSOS["minatar"], MINATAR)


def test_the_joined_product_sums_the_gradient_of_shared_weights_over_one_axis():
    rows, weight = jnp.ones((5, 4, 3)), jnp.ones((2, 3))

    def total(weight):
        return jax.vmap(lambda rows: joined_product(rows, weight))(rows).sum()

    np.testing.assert_array_equal(jax.grad(total)(weight), jnp.full((2, 3), 20.0))
    steps = jax.make_jaxpr(jax.grad(total))(weight).eqns
    contracted = [
        step.params["dimension_numbers"][0][0] for step in steps if step.primitive.name == "dot_general"
    ]
    assert [len(axes) for axes in contracted] == [1]


def test_the_joined_product_takes_weights_of_several_networks():
    rng = np.random.default_rng(0)
    rows, weights = jnp.float32(rng.normal(size=(5, 4, 3))), jnp.float32(rng.normal(size=(6, 2, 3)))
    of_all = jax.vmap(jax.vmap(joined_product, in_axes=(None, 0)), in_axes=(0, None))(rows, weights)
    np.testing.assert_allclose(of_all, np.einsum("brk,nok->bnro", rows, weights), rtol=1e-5, atol=1e-6)


def test_the_nature_torso_sees_21_then_11_then_11_cells_and_7744_features():
    torso, shape, seen = TORSOS["nature"], ATARI.observation_shape, []
    for convolution in torso.convolutions:
        layer = random_layer(np.random.default_rng(0), convolution, shape[2])
        image = jax.ShapeDtypeStruct(shape, "float32")
        shape = jax.eval_shape(partial(convolve, layer, convolution=convolution), image).shape
        seen.append(shape)
    assert seen == [(21, 21, 32), (11, 11, 64), (11, 11, 64)]
    assert torso.shapes(ATARI.observation_shape)[-1] == (7744, 512)
    assert features(torso, ATARI).shape == (512,)


def features(torso: LayeredTorso, spec: Spec):
    """The shape of a torso's output, without computing it."""
    layers = jax.eval_shape(lambda: torso.init(jax.random.PRNGKey(0), spec.observation_shape, "glorot"))
    observation = jax.ShapeDtypeStruct(spec.observation_shape, spec.frame_dtype)
    return jax.eval_shape(torso, layers, observation)


@pytest.mark.parametrize(
    ("name", "spec", "columns", "count"),
    [
        ("mlp", CARTPOLE, 1, (4 * 64 + 64) + (64 * 64 + 64) + (64 * 2 + 2)),
        ("minatar", MINATAR, 1, (3 * 3 * 4 * 16 + 16) + (8 * 8 * 16 * 128 + 128) + (128 * 6 + 6)),
        ("nature", ATARI, 200, 8_224 + 32_832 + 36_928 + (7744 * 512 + 512) + (512 * 4 * 200 + 4 * 200)),
    ],
)
def test_parameters_are_as_many_as_counted_by_hand(name, spec, columns, count):
    network = MultiHead(torso_for(spec, name), spec.actions, columns, "fan_in")
    params = jax.eval_shape(lambda: network.init(jax.random.PRNGKey(0), spec.observation_shape))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == count


@pytest.mark.parametrize("size", [(5, 5), (9, 12), (7, 30)], ids=str)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_declared_shapes_fit_any_image(padding, size):
    """Were a declared shape wrong, the first dense layer would not multiply."""
    torso = LayeredTorso((Convolution(2, 3, 1, padding), Convolution(3, 2, 1, padding)), hidden=(5,))
    spec = Spec(frame_shape=(*size, 2), frame_dtype="float32", actions=2)
    assert features(torso, spec).shape == (5,)


@pytest.mark.parametrize(
    ("shape", "fan_in", "fan_out"), [((300, 200), 300, 200), ((8, 8, 4, 32), 8 * 8 * 4, 8 * 8 * 32)]
)
def test_initial_weights_are_uniform_up_to_their_limit(shape, fan_in, fan_out):
    variance_scale = 1 / math.sqrt(3)
    limits = {"glorot": math.sqrt(6 / (fan_in + fan_out)), "fan_in": math.sqrt(3 * variance_scale / fan_in)}
    for initializer, limit in limits.items():
        weight = np.array(initial_weight(jax.random.PRNGKey(0), shape, initializer))
        assert weight.shape == shape
        assert limit * 0.99 < weight.max() <= limit
        assert -limit <= weight.min() < -limit * 0.99
        np.testing.assert_allclose(weight.std(), limit / math.sqrt(3), rtol=0.02)


@pytest.mark.parametrize("initializer", ["glorot", "fan_in"])
def test_a_table_is_one_dense_layer_with_no_bias_at_first(initializer):
    """The limit of the last layer counts all actions * columns outputs, as a dense layer does."""
    network = MultiHead(TORSOS["mlp"], actions=2, columns=100, initializer=initializer)
    params = jax.device_get(network.init(jax.random.PRNGKey(0), (4,)))
    limit = {"glorot": math.sqrt(6 / (64 + 200)), "fan_in": math.sqrt(math.sqrt(3) / 64)}[initializer]
    assert params["weight"].shape == (64, 2, 100)
    assert 0.99 * limit < np.abs(params["weight"]).max() <= limit
    for bias in (params["bias"], *(layer.bias for layer in params["torso"])):
        assert not np.any(bias)


def test_bytes_are_scaled_to_one_inside_and_other_types_are_not():
    torso = TORSOS["mlp"]
    layers = torso.init(jax.random.PRNGKey(0), (4,), "glorot")

    def by_hand(values):
        for layer in layers:
            values = np.maximum(values @ np.array(layer.weight) + np.array(layer.bias), 0)
        return values

    cells = np.array([0, 1, 51, 255])
    np.testing.assert_allclose(torso(layers, jnp.uint8(cells)), by_hand(cells / 255), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(torso(layers, jnp.float32(cells)), by_hand(cells), rtol=1e-5, atol=1e-4)
    bits = np.array([True, False, True, True])
    np.testing.assert_allclose(torso(layers, jnp.array(bits)), by_hand(bits * 1.0), rtol=1e-5, atol=1e-6)
    network = Perceptron((5,), 2)
    params, action = network.init(jax.random.PRNGKey(0), 4, 1), jnp.array([0.5])
    expected = network(params, jnp.float32(cells / 255), action)
    np.testing.assert_allclose(network(params, jnp.uint8(cells), action), expected, rtol=1e-6)


@pytest.mark.parametrize("columns", [1, 3, 200])
def test_mixing_a_table_is_mixing_its_columns(columns):
    rng = np.random.default_rng(columns)
    shapes = {"features": (7,), "weight": (7, 4, columns), "bias": (4, columns)}
    table = Table(**{name: np.float32(rng.normal(size=shape)) for name, shape in shapes.items()})
    alpha = np.float32(rng.uniform(size=columns))
    values, mixed, mean = jax.jit(lambda: (table.columns(), table @ alpha, table.mean()))()
    for a in range(4):
        row = [sum(table.features * table.weight[:, a, k]) + table.bias[a, k] for k in range(columns)]
        np.testing.assert_allclose(values[a], row, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(mixed[a], sum(row * alpha), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(mean[a], sum(row) / columns, rtol=1e-4, atol=1e-5)


# Separate networks: one program, the numbers of each by itself.

HEADS = MultiHead(LayeredTorso(hidden=(5,)), actions=3, columns=2, initializer="fan_in")
NETWORKS = MultiNetwork(HEADS, count=4)
OBSERVATION = np.float32([0.3, -1.2, 0.8, 2.0])


def separate_networks() -> tuple[dict, SplitTable, list[Table]]:
    """The parameters of four networks, their table, and the table that each makes by itself."""
    params = NETWORKS.init(jax.random.PRNGKey(0), (4,))
    alone = [HEADS(jax.tree.map(lambda leaf, n=n: leaf[n], params), OBSERVATION) for n in range(4)]
    return params, NETWORKS(params, OBSERVATION), alone


def test_separate_networks_are_each_computed_by_itself():
    """The columns of the first network come first, then the second's: eight in all."""
    _, table, alone = separate_networks()
    by_hand = np.concatenate([part.columns() for part in alone], axis=1)
    assert by_hand.shape == (3, 8)
    np.testing.assert_allclose(table.columns(), by_hand, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mixtures", [(), (1,), (5,)], ids=str)
def test_mixing_separate_networks_is_mixing_their_columns(mixtures):
    _, table, _ = separate_networks()
    columns = np.array(table.columns())
    alpha = np.random.default_rng(0).uniform(size=(8, *mixtures)).astype(np.float32)
    expected = np.zeros((3, *mixtures))
    for a in range(3):
        for k in range(8):
            expected[a] += columns[a, k] * alpha[k]
    np.testing.assert_allclose(table @ alpha, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(table.mean(), columns.mean(axis=1), rtol=1e-5, atol=1e-6)


def test_separate_networks_start_apart_and_within_the_limits_of_one():
    """Each is drawn by a key of its own, as if it were alone: the limits count its own outputs only."""
    params, _, _ = separate_networks()
    for n, key in enumerate(jax.random.split(jax.random.PRNGKey(0), 4)):
        alone = HEADS.init(key, (4,))
        for together, own in zip(jax.tree.leaves(params), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(together[n], own, rtol=1e-6)
    for weight in (params["weight"], *(layer.weight for layer in params["torso"])):
        for one in range(4):
            for other in range(one):
                assert not np.allclose(weight[one], weight[other])


def test_separate_networks_start_as_dqn_does_and_heads_of_one_by_fan_in():
    """The released code builds separate networks of the plain kind, with Keras' glorot."""
    spec = Spec((40,), "float32", actions=3)
    for networks, limit in ((1, math.sqrt(math.sqrt(3) / 40)), (4, math.sqrt(6 / (40 + 64)))):
        agent = replace(agents.preset("ensemble_dqn"), columns=4, networks=networks)
        first = np.abs(agent.init(jax.random.PRNGKey(0), spec)["q"]["torso"][0].weight)
        assert 0.98 * limit < first.max() <= limit


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_heads_may_start_as_one_shared_head_plus_their_own(spread):
    network = MultiHead(TORSOS["mlp"], actions=3, columns=200, initializer="fan_in", spread=spread)
    weight = np.asarray(network.init(jax.random.PRNGKey(1), (4,))["weight"])
    limit, shared = math.sqrt(math.sqrt(3) / 64), weight.mean(axis=2)
    assert np.abs(shared).max() > 0.9 * limit  # the mean head is as large as one
    apart = (weight - shared[:, :, None]).std()
    assert apart == pytest.approx(spread * limit / math.sqrt(3), rel=0.05, abs=1e-7)
    alone = replace(network, spread=None).init(jax.random.PRNGKey(1), (4,))["weight"]
    assert np.asarray(alone).mean(axis=2).std() < 0.1 * shared.std()


@pytest.mark.parametrize("late", [False, True])
def test_the_last_part_of_the_input_may_enter_at_the_second_layer(late):
    network = Perceptron((5, 3), 2, late=late)
    layers = network.init(jax.random.PRNGKey(0), 4, 2)
    assert [layer.weight.shape for layer in layers] == ([(4, 5), (7, 3)] if late else [(6, 5), (5, 3)]) + [
        (3, 2)
    ]
    random = np.random.default_rng(0)
    observation, action = random.normal(size=4).astype(np.float32), random.normal(size=2).astype(np.float32)
    x = observation if late else np.concatenate([observation, action])
    x = np.maximum(x @ layers[0].weight + layers[0].bias, 0)
    x = np.concatenate([x, action]) if late else x
    x = np.maximum(x @ layers[1].weight + layers[1].bias, 0)
    expected = x @ layers[2].weight + layers[2].bias
    np.testing.assert_allclose(network(layers, observation, action), expected, rtol=1e-5)


@pytest.mark.parametrize("column", [0, 3, 7])
def test_the_gradient_of_a_column_stays_in_its_own_network(column):
    params, _, _ = separate_networks()

    def value(params):
        return NETWORKS(params, OBSERVATION).columns()[:, column].sum()

    gradient = jax.grad(value)(params)
    touched = {n for leaf in jax.tree.leaves(gradient) for n in range(4) if np.any(leaf[n] != 0)}
    assert touched == {column // 2}
    shared = jax.grad(lambda params: HEADS(params, OBSERVATION).columns()[:, 0].sum())
    torso = shared(HEADS.init(jax.random.PRNGKey(0), (4,)))["torso"]
    assert np.any(torso[0].weight != 0)  # heads of one network do share a torso


def test_the_network_is_chosen_by_the_observations():
    assert torso_for(ATARI) is TORSOS["nature"]
    assert torso_for(MINATAR) is TORSOS["minatar"]
    assert torso_for(CARTPOLE) is TORSOS["mlp"]
    assert torso_for(MINATAR, "mlp") is TORSOS["mlp"]


def test_an_unknown_name_is_answered_with_the_nearest_one_and_vectors_with_another_network():
    with pytest.raises(UsageError, match='there is no torso "natur": did you mean "nature"'):
        torso_for(ATARI, "natur")
    with pytest.raises(UsageError, match='unknown initializer "glorott": did you mean "glorot"'):
        initial_weight(jax.random.PRNGKey(0), (2, 2), "glorott")
    with pytest.raises(UsageError, match="known: auto, linear, minatar, mlp, nature"):
        torso_for(ATARI, "zzz")
    for name in ("nature", "minatar"):
        with pytest.raises(UsageError, match=f'"{name}" network needs images.*use "mlp"'):
            torso_for(CARTPOLE, name)


def test_widths_are_an_option_of_every_network():
    assert torso_for(CARTPOLE, "mlp", "32,16") == LayeredTorso(hidden=(32, 16))
    assert torso_for(MINATAR, hidden="32").convolutions == TORSOS["minatar"].convolutions
    params = agents.Dqn(network=Network(hidden=(32, 16))).init(jax.random.PRNGKey(0), CARTPOLE)["q"]
    assert [layer.weight.shape for layer in params["torso"]] == [(4, 32), (32, 16)]
    assert params["weight"].shape == (16, CARTPOLE.actions, 1)
    arms = Spec((3,), "float32", action_low=(-1.0,), action_high=(1.0,))
    params = agents.Td3(network=DenseNetwork((8,))).init(jax.random.PRNGKey(0), arms)
    assert [layer.weight.shape for layer in params["actor"]] == [(3, 8), (8, 1)]
    assert [layer.weight.shape for layer in params["critic"]] == [(2, 4, 8), (2, 8, 1)]


def test_a_network_may_be_said_in_several_ways():
    assert agents.Rem(network="mlp") == agents.Rem(network=Network("mlp"))
    assert Network(hidden="256,128") == Network(hidden=(256, 128)) == Network(hidden=" 256, 128")
    assert Network(hidden=[7]).hidden == "7" and Network(hidden=None) == Network()
    for hidden in ("", "0", "3,,4", "3-4", "3,-1", "x", (), (2.5,)):
        with pytest.raises(UsageError, match="write their widths as 400,300"):
            Network(hidden=hidden)
