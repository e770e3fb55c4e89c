"""The kernels of a GPU compute what the plain form computes, here interpreted; only the factors are rounded.

A bf16 number has 8 significant bits, so rounding changes it by at most 1/256 of itself. Where both sides
multiply the same rounded factors, a layer's gradient agrees to float32's own accuracy.
"""

import math
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist.errors import UsageError
from optimist.networks import TORSOS, Convolution, Layer, LayeredTorso, Table, convolve, implicit, rounded
from optimist.networks.precision import check_precision
from optimist.networks.rounded import rounded_features

BF16 = 1 / 256
FLOAT32 = 1e-5
LAYERS = {
    "bytes, stride 4": (Convolution(16, 8, 4), (13, 12, 4), np.uint8),
    "stride 2": (Convolution(16, 4, 2), (9, 10, 16), np.float32),
    "stride 1": (Convolution(16, 3, 1), (5, 4, 64), np.float32),
    "no padding": (Convolution(16, 4, 2, "VALID"), (9, 7, 16), np.float32),
}


def error(found, expected) -> float:
    """The length of the difference as a share of the length of what is expected."""
    found, expected = (np.asarray(each, np.float64).ravel() for each in (found, expected))
    assert np.isfinite(found).all()
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def in_bf16(array):
    return array.astype(jnp.bfloat16).astype(jnp.float32)


def random_images(random, shape: tuple[int, ...], kind) -> jax.Array:
    if kind == np.uint8:
        return jnp.asarray(random.integers(0, 256, shape).astype(np.uint8))
    return jnp.asarray(random.normal(size=shape), jnp.bfloat16)


def random_layer(random, convolution: Convolution, channels: int) -> Layer:
    shape = (convolution.size, convolution.size, channels, convolution.channels)
    weight = random.normal(size=shape) / math.sqrt(math.prod(shape[:3]))
    return Layer(in_bf16(jnp.float32(weight)), jnp.float32(random.normal(size=convolution.channels)))


@pytest.mark.parametrize(("convolution", "shape", "kind"), LAYERS.values(), ids=LAYERS)
def test_an_implicit_convolution_is_the_plain_one(convolution, shape, kind):
    random = np.random.default_rng(0)
    images = random_images(random, (2, *shape), kind)
    layer = random_layer(random, convolution, shape[2])
    floats = images / 255 if kind == np.uint8 else images.astype(jnp.float32)

    def fast(layer, images):
        return jax.vmap(lambda image: implicit.convolved(layer, image, convolution))(images)

    def plain(layer, images):
        return jax.vmap(lambda image: convolve(layer, image, convolution))(images)

    outputs = jax.jit(fast)(layer, images)
    expected = plain(layer, floats)
    assert outputs.dtype == jnp.bfloat16
    assert error(outputs, jax.nn.relu(expected)) < BF16
    direction = in_bf16(jnp.float32(random.normal(size=outputs.shape)))
    passed = direction * (outputs > 0)  # what a ReLU sends back, where bf16 made it zero or not

    def along(function, images):
        return lambda layer: (function(layer, images).astype(jnp.float32) * direction).sum()

    found = jax.jit(jax.grad(along(fast, images)))(layer)
    wanted = jax.grad(lambda layer: (plain(layer, floats) * passed).sum())(layer)
    assert error(found.weight, wanted.weight) < FLOAT32
    assert error(found.bias, wanted.bias) < FLOAT32
    if kind != np.uint8:
        sent = jax.jit(jax.grad(lambda images: along(fast, images)(layer)))(images)
        wanted_sent = jax.grad(lambda floats: (plain(layer, floats) * passed).sum())(floats)
        assert error(sent, wanted_sent) < BF16


def test_seeds_and_networks_are_each_as_alone():
    """Fused seeds differ in weights and images; separate networks have the same images."""
    convolution, shape, kind = LAYERS["stride 2"]
    random = np.random.default_rng(1)
    images = random_images(random, (2, 2, *shape), kind)
    layers = [random_layer(random, convolution, shape[2]) for _ in range(2)]
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)

    def loss(layer, images):
        outputs = jax.vmap(lambda image: implicit.convolved(layer, image, convolution))(images)
        return (outputs.astype(jnp.float32) ** 2).sum()

    def loss_of_networks(layers, images):
        def of_all(image):
            return jax.vmap(lambda layer: implicit.convolved(layer, image, convolution))(layers)

        return (jax.vmap(of_all)(images).astype(jnp.float32) ** 2).sum()

    alone = [jax.grad(loss)(layer, images[0]) for layer in layers]
    seeds = jax.vmap(jax.grad(loss))(together, jnp.stack([images[0], images[0]]))
    networks = jax.grad(loss_of_networks)(together, images[0])
    for place, expected in enumerate(alone):
        for found in (seeds, networks):
            assert error(found.weight[place], expected.weight) < FLOAT32
            assert error(found.bias[place], expected.bias) < FLOAT32


def test_one_mixture_of_a_table_is_the_same_as_a_sum_and_as_a_product():
    random = np.random.default_rng(3)
    weight, bias, features = (jnp.float32(random.normal(size=size)) for size in ((6, 3, 5), (3, 5), 6))
    alpha = jnp.float32(random.dirichlet(np.ones(5)))[:, None]

    def gradients(mix):
        return jax.grad(lambda weight, bias: (mix(Table(features, weight, bias)) ** 2).sum(), (0, 1))(
            weight, bias
        )

    table = Table(features, weight, bias)
    np.testing.assert_allclose(table._mixed_once(alpha), table @ alpha, rtol=1e-5, atol=1e-6)
    as_a_sum, as_a_product = gradients(lambda t: t._mixed_once(alpha)), gradients(lambda t: t @ alpha)
    for one, other in zip(as_a_sum, as_a_product, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_rounded_torso_has_the_features_and_gradients_of_the_plain_one():
    """Bytes to features through three layers: features within 1%, gradients within 10% of their length. Some
    ReLUs near zero open on one side only, so gradients differ more than features do."""
    torso = LayeredTorso((Convolution(16, 8, 4), Convolution(16, 4, 2)), hidden=(64,))
    random, shape, batch = np.random.default_rng(4), (20, 20, 4), 16
    images = random_images(random, (batch, *shape), np.uint8)
    params = torso.init(jax.random.PRNGKey(0), shape, "fan_in")
    assert implicit.serves(shape, torso.convolutions)
    direction = jnp.float32(random.normal(size=(batch, 64)))

    def both(features):
        def loss(params):
            found = jax.vmap(lambda image: features(params, image))(images)
            return (found * direction).sum(), found

        return jax.jit(jax.grad(loss, has_aux=True))(params)

    found, features = both(partial(rounded_features, torso))
    expected, plain_features = both(torso.plain)
    assert error(features, plain_features) < 0.01
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert error(ours, theirs) < 0.1


def test_a_streamed_product_is_the_plain_one():
    random = np.random.default_rng(2)
    features = in_bf16(jnp.float32(random.normal(size=(16, 192))))
    weight = in_bf16(jnp.float32(random.normal(size=(192, 64)) / 14))
    direction = in_bf16(jnp.float32(random.normal(size=(16, 64))))

    def streamed_products(features, weight):
        return jax.vmap(lambda one: rounded.product(one, weight))(features)

    def gradients(function):
        return jax.grad(lambda *both: (function(*both) * direction).sum(), argnums=(0, 1))(features, weight)

    assert error(streamed_products(features, weight), features @ weight) < FLOAT32
    for found, expected in zip(gradients(streamed_products), gradients(jnp.matmul), strict=True):
        assert error(found, expected) < BF16


@pytest.mark.parametrize(
    ("torso", "shape", "serves"), [("nature", (84, 84, 4), True), ("minatar", (10, 10, 4), False)]
)
def test_the_kernels_serve_networks_of_powers_of_two(torso, shape, serves):
    assert implicit.serves(shape, TORSOS[torso].convolutions) is serves


def test_an_unknown_precision_is_refused():
    with pytest.raises(UsageError, match='no precision "bf61": did you mean "bf16"'):
        check_precision("bf61")


def test_a_torso_imports_no_kernels():
    script = "import sys, optimist.networks; print('optimist.networks.implicit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
