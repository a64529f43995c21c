"""Shapes, arithmetic types and variables of networks while they are traced; what is refused."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax import games
from azjax.networks import MLPConfig, ResNetConfig, base, from_module, make_network
from azjax.networks.convolution import is_faster
from azjax.networks.equivariant import make_group
from azjax.networks.nnx import from_nnx
from azjax.search.evaluators import network_evaluator
from modules import KINDS, Custom
from refusals import assert_refused


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four:4x5", "othello:4", "mnk:3x4x3"])
def test_a_group_acts_as_its_symmetries(name):
    """`copies` is how the symmetries compose; characters multiply as their involutions do."""
    symmetries = games.make(name).symmetries
    group = make_group(symmetries)
    count, blocks = len(group.cells), len(group.characters)
    assert sorted(map(tuple, group.cells)) == sorted(map(tuple, symmetries.cells))
    for g in range(count):
        row = symmetries.cells.tolist().index(group.cells[g].tolist())
        inverse = np.argsort(symmetries.actions[row])
        np.testing.assert_array_equal(group.actions[g], inverse)
        for copy in range(count):
            composed = group.cells[g][group.cells[copy]]
            np.testing.assert_array_equal(group.cells[group.copies[g, copy]], composed)
    step, commuting = count // blocks, np.arange(blocks)
    composed = step * (commuting[:, None] ^ commuting)  # Of every two of the involutions.
    np.testing.assert_array_equal(group.copies[::step, ::step], composed)
    np.testing.assert_array_equal(
        group.characters @ group.characters, blocks * np.eye(blocks, dtype=int)
    )


def test_the_arithmetic_is_chosen_by_the_processor(tic_tac_toe, monkeypatch):
    def types(config):
        network = make_network(config, tic_tac_toe, "cpu")
        folded = jax.eval_shape(lambda: network.fold(network.init(jax.random.key(0))))
        return {leaf.dtype for leaf in jax.tree.leaves(folded)}

    assert types(MLPConfig()) == {jnp.float32.dtype}
    conv = ResNetConfig(layers="conv")
    for config, flags, dtype in [
        (MLPConfig(), "avx512f", "float32"),
        (MLPConfig(), "amx_bf16", "bfloat16"),
        (conv, "amx_bf16", "float32"),
        (ResNetConfig(), "amx_bf16", "bfloat16"),
    ]:
        text = f"flags: sse {flags}"
        monkeypatch.setattr(base.pathlib.Path, "read_text", lambda path, text=text: text)
        chosen = types(dataclasses.replace(config, evaluation_dtype="auto"))
        assert chosen == {jnp.dtype(dtype)}


def test_the_form_of_convolutions_is_chosen_by_board_arithmetic_and_platform():
    single, half = jnp.float32, jnp.bfloat16
    assert is_faster((3, 3), single, "cpu") and is_faster((5, 5), single, "cpu")
    others = ((3, 3), half, "cpu"), ((3, 3), single, "gpu"), ((5, 6), single, "cpu")
    assert not any(is_faster(*arguments) for arguments in others)


# Refusals.


def test_refused_games(tic_tac_toe):
    """Also refused: settings that do not fit together, or that are out of range."""
    stones = tic_tac_toe._replace(encodings=("stones",))
    odd = MLPConfig(hidden=(20,), head_hidden=8, symmetric=True)
    known = "network.encoding is 'colour': use 'absolute' or 'relative', which tic_tac_toe has"
    made, four = make_network(KINDS["mlp"], tic_tac_toe), games.make("connect_four")
    ten = tic_tac_toe._replace(num_actions=10)
    rows = [
        (make_network, (ResNetConfig(encoding="colour"), tic_tac_toe), known),
        (from_module, (tic_tac_toe, Custom(), "colour"), known),
        (make_network, (MLPConfig(), stones), "network.encoding is 'relative': use 'stones', wh"),
        (make_network, (odd, tic_tac_toe), "8 symmetries of ... [8, 20], multiples of 8"),
        (network_evaluator, (four, made), "was made for planes [3, 3, 2] and 9 actions, and con"),
        (network_evaluator, (ten, made), "and 9 actions, and tic_tac_toe has [3, 3, 2] and 10"),
        (network_evaluator, (four, "net"), "the network is of type str: use a Network"),
    ]
    settings = [
        (ResNetConfig, {"width": 0}, "network.width is 0: use 1 to 65536"),
        (ResNetConfig, {"norm": "group"}, "network.norm is 'group': use 'none' or 'layer' or"),
        (ResNetConfig, {"symmetric": True, "norm": "batch"}, "needs dense layers without BatchNo"),
        (MLPConfig, {"hidden": ()}, "network.hidden is ()"),
        (MLPConfig, {"hidden": (8, 0)}, "network.hidden is (8, 0)"),
    ]
    assert_refused(
        *((functools.partial(call, *given), text) for call, given, text in rows),
        *((functools.partial(kind, **given), text) for kind, given, text in settings),
    )


class Returns(nn.Module):
    """A linear layer followed by a function."""

    make: Callable[[jax.Array, bool], Any]

    @nn.compact
    def __call__(self, planes, train=False):
        return self.make(nn.Dense(10)(planes.reshape(len(planes), -1)), train)


class WithoutTrain(nn.Module):
    def __call__(self, planes):
        return planes


def test_refused_linen_modules(tic_tac_toe):
    returns = "for 3 positions of tic_tac_toe the module returns "
    rows = [
        (lambda x, train: (x[:, :9], x[:, 9:]), "(float32[3, 9], float32[3, 1]): make it a tuple"),
        (lambda x, train: {"logits": x[:, :9]}, "{logits: float32[3, 9]}"),
        (lambda x, train: (x[:, :9], x[:, 9:] if train else x[:, 9]), "(float32...3, 1])"),
    ]
    refused = [(Returns(make), returns + text) for make, text in rows]
    refused += [
        (Custom, "the module is the class Custom: pass an instance"),
        (Variant(nnx.Rngs(0)), "the module is Variant: ... of flax.nnx to from_nnx"),
        (WithoutTrain(), "WithoutTrain.__call__ does not take train"),
    ]
    rows = [(functools.partial(from_module, tic_tac_toe, module), text) for module, text in refused]
    assert_refused(*rows)


class Variant(nnx.Module):
    """A layer with variations for the tests."""

    def __init__(self, rngs, width=18, **others):
        self.layer = nnx.Linear(width, 10, rngs=rngs)
        for name, make in others.items():
            setattr(self, name, make(rngs))

    def __call__(self, planes):
        x = self.layer(planes.reshape(len(planes), -1))
        x = self.noise(x) if hasattr(self, "noise") else x
        return x[:, :9], jnp.tanh(x[:, 9])


class Grows(Variant):
    def __call__(self, planes):
        self.seen = nnx.Variable(planes)
        return super().__call__(planes)


def variant(**others):
    return functools.partial(Variant, **others)


def test_refused_nnx_modules(tic_tac_toe):
    def dropout(**others):
        return variant(noise=lambda rngs: nnx.Dropout(0.5, **(others and {"rngs": rngs})))

    made, array = Variant(nnx.Rngs(0)), variant(kept=lambda rngs: jnp.zeros(3))
    rows = [
        (Variant(nnx.Rngs(0)), "make is of type Variant: give a function of rngs that makes a new"),
        (nn.Dense(3), "Dense is a module of flax.linen: use from_module(game, module)"),
        (lambda rngs: made, "make returns a module, Variant, without parameters or with weights"),
        (lambda rngs: 3, "make returns int: return a module of flax.nnx with a method __call__(s"),
        (variant(width=7), "the module cannot be applied to planes bool[3, 3, 3, 2] of tic_tac_"),
        (dropout(kept=True), "Variant keeps a random state, noise.rngs.count, but networks draw"),
        (dropout(), "or draws random numbers (`determin"),
        (array, "Variant keeps an array, kept: make it an nnx.Variable"),
        (
            Grows,
            "training makes {state: {seen: bool[3, 3, 3, 2]}} of the module's var",
        ),
    ]
    assert_refused(*((functools.partial(from_nnx, tic_tac_toe, make), text) for make, text in rows))
