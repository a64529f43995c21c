"""Small networks of every kind, with random variables, and their training on one device and two."""

import dataclasses
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from azjax.networks import MLPConfig, ResNetConfig, from_module, make_network
from azjax.networks.nnx import from_nnx

CONV = ResNetConfig(layers="conv", width=4, blocks=1, norm="batch", head_hidden=8)
DENSE = ResNetConfig(width=16, blocks=2, norm="none", head_hidden=8)
KINDS = {
    "mlp": MLPConfig(hidden=(16, 8), head_hidden=4),
    "conv": CONV,
    "conv_LayerNorm": dataclasses.replace(CONV, norm="layer"),
    "dense": DENSE,
    "dense_LayerNorm": dataclasses.replace(DENSE, norm="layer"),
    "dense_BatchNorm": dataclasses.replace(DENSE, norm="batch"),
}
SYMMETRIC = {
    "symmetric": MLPConfig(hidden=(16, 8), head_hidden=8, symmetric=True),
    "symmetric_LayerNorm": dataclasses.replace(DENSE, norm="layer", symmetric=True),
}


def random_variables(network, seed=0):
    """Random variables, with variances small enough for the epsilon of BatchNorm to matter."""
    rng = np.random.default_rng(seed)

    def draw(path, leaf):
        values = 0.5 * rng.normal(size=leaf.shape)
        if len(leaf.shape) == 2:  # Wide layers would saturate all values at 1 or -1.
            values *= min(1, 2 / np.sqrt(leaf.shape[0]))
        if path[-1].key == "scale":
            values = 0.1 + abs(values) / 10
        if path[-1].key == "var":
            values = 0.005 + abs(values) / 50
        if path[-1].key == "order":
            values = np.arange(leaf.shape[0])[::-1]
        return jnp.asarray(values, leaf.dtype)

    return jax.tree_util.tree_map_with_path(draw, jax.eval_shape(network.init, jax.random.key(0)))


def random_planes(game, encoding="relative", batch=8):
    shape = jax.eval_shape(lambda: game.observe(game.init(), encoding)).shape
    return np.random.default_rng(1).random((batch, *shape)) < 0.4


def with_heads(planes, norm):
    x = nn.relu(norm(nn.Dense(8)(planes.reshape(len(planes), -1))))
    return nn.Dense(9)(x), nn.tanh(nn.Dense(1)(x))[:, 0]


class Custom(nn.Module):
    """A custom network with BatchNorm and a third head, without an `axis_name`."""

    @nn.compact
    def __call__(self, planes, train=False):
        logits, value = with_heads(planes, nn.BatchNorm(not train, momentum=0.5))
        return logits, value, {"plies left": 9 * value}


class OnMesh(nn.Module):
    """The same, normalized by the batches of all devices."""

    axis_name: str | None = None

    @nn.compact
    def __call__(self, planes, train=False):
        return with_heads(planes, nn.BatchNorm(not train, momentum=0.5, axis_name=self.axis_name))


class Model(nnx.Module):
    """A custom network with BatchNorm, a list of layers, and arrays that are not learned."""

    def __init__(self, rngs):
        self.first = nnx.Linear(18, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, momentum=0.5, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(8, 8, rngs=rngs) for _ in range(2)])
        self.last = nnx.Linear(8, 10, rngs=rngs)
        self.order = nnx.Variable(jnp.arange(18)[::-1])
        self.scales = np.ones(8, np.float32)

    def __call__(self, planes):
        x = planes.reshape(len(planes), -1)[:, self.order[...]] * jnp.float32(1)
        x = nnx.relu(self.norm(self.first(x)))
        for layer in self.layers:
            x += self.scales[None] * nnx.relu(layer(x))
        x = self.last(x)
        return x[:, :9], jnp.tanh(x[:, 9])


class Counts(nnx.Module):
    """A module with statistics outside `nnx.BatchNorm`."""

    def __init__(self, rngs):
        self.layer = nnx.Linear(18, 10, rngs=rngs)
        self.mean = nnx.BatchStat(jnp.zeros(18))

    def __call__(self, planes):
        x = planes.reshape(len(planes), -1) * 1.0
        self.mean[...] = x.mean(axis=0)
        x = self.layer(x)
        return x[:, :9], jnp.tanh(x[:, 9])


def networks(game):
    """Those with statistics, by name."""
    return {
        "conv": make_network(CONV, game),
        "custom": from_module(game, Custom()),
        "on_mesh": from_module(game, OnMesh()),
        "nnx": from_nnx(game, Model),
        "counts": from_nnx(game, Counts),
    }


def train_on_one_and_two(networks, variables, planes):
    """`{name: (outputs, updated)}` of `Network.train` on one device, on two, and of half a batch.

    On two devices, statistics have a leading axis of 2.
    """

    def step(variables, planes, axis_name):
        return {n: net.train(variables[n], planes, axis_name) for n, net in networks.items()}

    def on_each(variables, planes):
        found = step(variables, planes, "batch")
        lead = functools.partial(jax.tree.map, lambda leaf: leaf[None])
        return {name: (outputs, lead(updated)) for name, (outputs, updated) in found.items()}

    mesh = Mesh(np.array(jax.devices()[:2]), ("batch",))
    specs = {"in_specs": (P(), P("batch")), "out_specs": P("batch")}
    two = jax.shard_map(on_each, mesh=mesh, check_vma=False, **specs)
    one = jax.jit(functools.partial(step, axis_name=None))
    halves = [jax.device_get(one(variables, half)) for half in np.split(planes, 2)]
    return *jax.device_get((one(variables, planes), jax.jit(two)(variables, planes))), halves
