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
from flax.traverse_util import flatten_dict

from azjax import games
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, ResNetConfig, base, from_module, from_nnx, make_network
from azjax.networks.equivariant import make_group
from azjax.runs import presets
from azjax.search.evaluators import network_evaluator
from modules import CONV, KINDS, Custom, random_planes
from refusals import assert_refused


def shapes(network):
    """The shape of every parameter, by name."""
    variables = jax.eval_shape(network.init, jax.random.key(0))
    return {name: x.shape for name, x in flatten_dict(variables["params"], sep="/").items()}


def test_paper_has_the_shapes_of_the_textbook(tic_tac_toe):
    network = make_network(presets.get("paper").network, tic_tac_toe)
    blocks = [f"block{i}_{half}" for i in (0, 1) for half in "ab"]
    norms = {"stem": 64, **dict.fromkeys(blocks, 64), "policy_conv": 2, "value_conv": 1}
    assert shapes(network) == {
        "stem/kernel": (3, 3, 3, 64),
        **{f"{block}/kernel": (3, 3, 64, 64) for block in blocks},
        "policy_conv/kernel": (1, 1, 64, 2),
        "policy/kernel": (2 * 9, 9),
        "policy/bias": (9,),
        "value_conv/kernel": (1, 1, 64, 1),
        "value_hidden/kernel": (9, 64),
        "value_hidden/bias": (64,),
        "value/kernel": (64, 1),
        "value/bias": (1,),
        **{f"{name}_norm/{leaf}": (c,) for name, c in norms.items() for leaf in ("scale", "bias")},
    }


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
    conv = functools.partial(ResNetConfig, layers="conv")
    for kind, flags, dtype in [
        (MLPConfig, "avx512f", "float32"),
        (MLPConfig, "amx_bf16", "bfloat16"),
        (conv, "amx_bf16", "float32"),
        (ResNetConfig, "amx_bf16", "bfloat16"),
    ]:
        text = f"flags: sse {flags}"
        monkeypatch.setattr(base.pathlib.Path, "read_text", lambda path, text=text: text)
        network = make_network(kind(evaluation_dtype="auto"), tic_tac_toe, "cpu")
        folded = jax.eval_shape(lambda key: network.fold(network.init(key)), jax.random.key(0))  # noqa: B023
        assert {leaf.dtype for leaf in jax.tree.leaves(folded)} == {jnp.dtype(dtype)}


def test_the_form_of_convolutions_is_chosen_by_board_arithmetic_and_platform(tic_tac_toe):
    """Winograd's kernels for `n` times `m` cells are `(n + 2) (m + 2)` matrices."""
    for shape, dtype, platform, expected in [
        ((3, 3), "float32", "cpu", (25, 4, 4)),
        ((3, 3), "bfloat16", "cpu", (3, 3, 4, 4)),
        ((3, 3), "float32", "gpu", (3, 3, 4, 4)),
        ((5, 5), "float32", "cpu", (49, 4, 4)),
        ((5, 6), "float32", "cpu", (3, 3, 4, 4)),
    ]:
        planes = np.zeros((*shape, 2), bool)
        game = tic_tac_toe._replace(observe=lambda state, encoding, planes=planes: planes)
        config = dataclasses.replace(CONV, evaluation_dtype=dtype)
        network = make_network(config, game, platform)
        folded = jax.eval_shape(network.fold, jax.eval_shape(network.init, jax.random.key(0)))
        assert folded["params"]["block0_a"]["kernel"].shape == expected


def test_further_heads_reach_the_loss_and_not_the_search(tic_tac_toe):
    network = from_module(tic_tac_toe, Custom())
    variables = jax.eval_shape(network.init, jax.random.key(0))
    for form in (network.apply, lambda v, x: network.infer(network.fold(v), x)):
        logits, value, more = jax.eval_shape(form, variables, random_planes(tic_tac_toe))
        assert (logits.shape, value.shape, more["plies left"].shape) == ((8, 9), (8,), (8,))
    evaluate, states = network_evaluator(tic_tac_toe, network), init_batch(tic_tac_toe, 2)
    assert len(jax.eval_shape(evaluate, variables, None, states)) == 2


# Refusals.


def test_refused_settings():
    rows = [
        (ResNetConfig, {"width": 0}, "network.width is 0: use 1 to 65536"),
        (ResNetConfig, {"encoding": 3}, "network.encoding is 3, which is not of type str"),
        (ResNetConfig, {"norm": "group"}, "network.norm is 'group': use 'none' or 'layer' or"),
        (ResNetConfig, {"symmetric": True, "norm": "batch"}, "needs dense layers without BatchNo"),
        (ResNetConfig, {"symmetric": True, "layers": "conv"}, "but network.layers is 'conv'"),
        (MLPConfig, {"hidden": ()}, "network.hidden is ()"),
        (MLPConfig, {"hidden": (8, 0)}, "network.hidden is (8, 0)"),
    ]
    assert_refused(*((functools.partial(kind, **given), text) for kind, given, text in rows))


def test_refused_games(tic_tac_toe):
    stones = tic_tac_toe._replace(encodings=("stones",))
    odd = MLPConfig(hidden=(20,), head_hidden=8, symmetric=True)
    known = "network.encoding is 'colour': use 'absolute' or 'relative', which tic_tac_toe has"
    made, four = make_network(KINDS["mlp"], tic_tac_toe), games.make("connect_four")
    rows = [
        (make_network, (ResNetConfig(encoding="colour"), tic_tac_toe), known),
        (make_network, (MLPConfig(encoding="colour"), tic_tac_toe), known),
        (from_module, (tic_tac_toe, Custom(), "colour"), known),
        (make_network, (MLPConfig(), stones), "network.encoding is 'relative': use 'stones', wh"),
        (make_network, (odd, tic_tac_toe), "8 symmetries of ... (20,) and 8, multiples of 8"),
        (network_evaluator, (four, made), "was made for planes [3, 3, 2] and 9 actions, and con"),
        (
            network_evaluator,
            (tic_tac_toe._replace(num_actions=10), made),
            "and 9 actions, and tic_tac_toe has [3, 3, 2] and 10",
        ),
        (network_evaluator, (four, "net"), "the network is of type str: use a Network"),
    ]
    assert_refused(*((functools.partial(call, *given), text) for call, given, text in rows))


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
        (lambda x, train: (x, x[:, 0]), "(float32[3, 10], float32[3])"),
        (lambda x, train: x[:, :9], "float32[3, 9]: make it"),
        (lambda x, train: (x[:, :9],), "(float32[3, 9],)"),
        (lambda x, train: {"logits": x[:, :9]}, "{logits: float32[3, 9]}"),
        (lambda x, train: (x[:, :9], x[:, 9:] if train else x[:, 9]), "(float32...3, 1])"),
    ]
    refused = [(Returns(make), returns + text) for make, text in rows]
    refused += [
        (Custom, "the module is the class Custom, not a Flax module: pass an instance"),
        (3, "the module is of type int, not a Flax module: pass an instance"),
        (WithoutTrain(), "WithoutTrain.__call__(self, planes) does not take train"),
        (MADE, "Variant is a module of flax.nnx: use from_nnx"),
        (Variant, "Variant is a module of flax.nnx: use from_nnx"),
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


class Plain(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(18, 10, rngs=rngs)


class Grows(Plain):
    def __call__(self, planes):
        x = self.layer(planes.reshape(len(planes), -1))
        self.seen = nnx.Variable(x)
        return x[:, :9], jnp.tanh(x[:, 9])


class OneHead(Plain):
    def __call__(self, planes):
        return self.layer(planes.reshape(len(planes), -1))


def variant(**others):
    return functools.partial(Variant, **others)


MADE = Variant(nnx.Rngs(0))


def test_refused_nnx_modules(tic_tac_toe):
    def dropout(**others):
        return variant(noise=lambda rngs: nnx.Dropout(0.5, **(others and {"rngs": rngs})))

    array = variant(kept=lambda rngs: jnp.zeros(3))
    rows = [
        (MADE, "make is a module, Variant, with weights already drawn: give a function that"),
        (lambda rngs: MADE, "make returns a module, Variant, without parameters or with weights"),
        (3, "make is of type int: give a function of rngs alone"),
        (lambda: MADE, "make cannot be called with rngs (too many positional arguments): give"),
        (nn.Dense(3), "Dense is a module of flax.linen: use from_module(game, module)"),
        (nn.Dense, "Dense is a module of flax.linen: use from_module(game, module)"),
        (lambda rngs: nn.Dense(3), "make returns Dense, a module of flax.linen: use from_module("),
        (lambda rngs: 3, "make returns int: return a module of flax.nnx"),
        (Plain, "Plain cannot be called: give it a method __call__(self, planes)"),
        (OneHead, "the module returns float32[3, 10]: make it a tuple that starts with logits"),
        (variant(width=7), "the module cannot be applied to planes bool[3, 3, 3, 2] of tic_tac_"),
        (dropout(kept=True), "Variant keeps a random state, noise.rngs.count, but networks draw"),
        (dropout(), "or draws random numbers (`determin"),
        (array, "Variant keeps an array, kept, that is not a variable: make it an nnx.Param"),
        (Grows, "training adds or changes state.seen, a variable of the module: create it"),
    ]
    assert_refused(*((functools.partial(from_nnx, tic_tac_toe, make), text) for make, text in rows))
