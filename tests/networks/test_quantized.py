"""Quantized networks: equal bits everywhere, exact symmetry, and close to the float network."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import azjax
from azjax.games.base import choose
from azjax.networks import MLPConfig, ResNetConfig, make_network
from azjax.networks.quantized import EXACT, VALUES, make_quantized, symmetry_group
from azjax.networks.rounding import quantize
from azjax.runs import pretrained
from azjax.training.parts import SelfPlayConfig
from azjax.training.selfplay import start_games
from azjax.training.sharding import AXIS, make_mesh

_SMALL = MLPConfig(hidden=(48, 32), head_hidden=16, symmetric=True)
_CASES = {
    "connect_four:4x4": _SMALL,
    "othello:4": _SMALL,
    "hex:4": dataclasses.replace(_SMALL, symmetric=False),
}


def positions(game, count=512, seed=1, plies=10):
    """Positions after 0 to `plies` random moves."""
    config = SelfPlayConfig(opening_share=1.0, opening_plies=plies)
    return start_games(config, game, jax.random.split(jax.random.key(seed), count)).states


def observe(game, states):
    return jax.vmap(lambda state: game.observe(state, "relative"))(states)


@pytest.fixture(scope="module", params=_CASES)
def case(request):
    game = azjax.make(request.param)
    network = make_network(_CASES[request.param], game)
    variables = network.init(jax.random.key(3))
    states = positions(game)
    return game, network, variables, states, quantize(game, network, variables, states)


def reference(game, network, variables, planes):
    """Evaluates a quantized network with Python's rules for integers, position by position."""
    params = {k: {p: np.asarray(a) for p, a in v.items()} for k, v in variables["params"].items()}
    symmetries = game.symmetries
    cells = symmetries.cells if network.symmetric else np.arange(planes[0].size // 2)[None]
    moves = symmetries.actions if network.symmetric else np.arange(game.num_actions)[None]
    group = symmetry_group(game, network.symmetric)

    def product(x, kernel):
        return (x.astype(float) @ kernel.astype(float)).astype(int)  # Exact below 2 ** 53.

    def hidden(name, x, orders):
        """The copies of a layer: copy 0, for the inputs as every symmetry turns them."""
        layer = params[name]
        outputs = []
        for order in orders:
            parts = x.reshape(len(x), len(order), -1)[:, order].reshape(len(x), -1)
            total = product(parts, layer["kernel"]) + layer["bias"]
            outputs.append(np.clip(total >> layer["shift"].astype(int), 0, 127))
        return np.concatenate(outputs, axis=1)

    x = hidden("Dense_0", planes.reshape(len(planes), -1).astype(int), group.cells)
    for name in sorted(name for name in params if name.startswith("Dense_"))[1:]:
        x = hidden(name, x, group.copies)
    policy, value = (hidden(name, x, group.copies) for name in ("policy_hidden", "value_hidden"))
    copies = len(group.copies)
    kernel = params["policy"]["kernel"]
    total = params["policy"]["bias"].astype(int) + sum(
        product(part, kernel[:, order])
        for part, order in zip(np.split(policy, copies, axis=1), group.actions, strict=True)
    )
    total >>= int(params["policy"]["shift"])
    ranks = 1 << (game.num_actions - 1).bit_length()
    logits = np.zeros(total.shape, np.float32)
    for row, board in enumerate(planes.reshape(len(planes), cells.shape[1], -1).astype(int)):
        turned = [tuple(board[order].ravel()) for order in cells]
        best = [moved for copy, moved in zip(turned, moves, strict=True) if copy == min(turned)]
        rank = np.min([np.argsort(moved) for moved in best], axis=0)
        logits[row] = (total[row] * ranks - rank) * params["policy"]["scale"]
    found = value @ np.tile(params["value"]["kernel"].astype(int), (copies, 1))
    index = (found[:, 0] + int(params["value"]["bias"][0])) >> int(params["value"]["shift"])
    index = np.clip(index, -VALUES, VALUES)
    return logits, params["value"]["table"][index + VALUES]


def test_every_way_to_compute_gives_equal_bits(case):
    game, _, _, states, quantized = case
    planes = observe(game, states)
    expected = reference(game, quantized.network, quantized.variables, np.asarray(planes))
    for dtype in ("float32", "bfloat16"):
        network = make_quantized(
            game, quantized.variables, "relative", quantized.network.symmetric, dtype
        )
        folded = network.fold(quantized.variables)
        sharded = jax.shard_map(
            network.infer, mesh=make_mesh(), in_specs=(P(), P(AXIS)), out_specs=P(AXIS)
        )
        single = jax.vmap(lambda one: network.infer(folded, one[None]))
        for outputs in (
            network.apply(quantized.variables, planes),
            jax.jit(network.infer)(folded, planes),
            jax.jit(sharded)(folded, planes),
            [x[:, 0] for x in jax.jit(single)(planes)],
        ):
            for output, wanted in zip(outputs, expected, strict=True):
                np.testing.assert_array_equal(output, wanted)


def test_symmetric_copies_get_exactly_symmetric_outputs(case):
    game, network, _, states, quantized = case
    if not network.symmetric:
        return
    planes = observe(game, states)
    logits, value = quantized.network.apply(quantized.variables, planes)
    for cells, actions in zip(game.symmetries.cells, game.symmetries.actions, strict=True):
        turned = planes.reshape(len(planes), len(cells), -1)[:, cells].reshape(planes.shape)
        others, same = quantized.network.apply(quantized.variables, turned)
        np.testing.assert_array_equal(others, logits[:, actions])
        np.testing.assert_array_equal(same, value)


def test_the_outputs_are_close_to_those_of_the_float_network(case):
    game, network, variables, states, quantized = case
    planes = observe(game, states)
    logits, value = network.apply(variables, planes)
    rounded, near = quantized.network.apply(quantized.variables, planes)
    assert np.abs(rounded - logits).max() < 0.06 * np.abs(logits).max() + 0.01
    assert np.abs(near - value).max() < 0.05
    legal = jax.vmap(game.legal_actions)(states)
    assert np.mean(choose(rounded, legal) == choose(logits, legal)) > 0.9


def test_ties_go_to_the_lowest_action_in_the_canonical_orientation():
    game = azjax.make("connect_four:4x4")
    network = make_network(_SMALL, game)
    nothing = jax.tree.map(jnp.zeros_like, network.init(jax.random.key(0)))
    some = network.init(jax.random.key(0))["params"]
    some = {name: nothing["params"][name] if name == "policy" else some[name] for name in some}
    some["policy"]["kernel"] = some["policy"]["kernel"].at[0, 0].set(1e-9)  # Not all zero.
    states = positions(game)
    quantized = quantize(game, network, {"params": some}, states)
    quantized.variables["params"]["policy"]["kernel"][:] = 0
    planes = np.asarray(observe(game, states))
    chosen = np.asarray(quantized.network.apply(quantized.variables, planes)[0]).argmax(axis=1)
    for board, action in zip(planes, chosen, strict=True):
        mirrored = board[:, ::-1]
        is_canonical = tuple(board.ravel()) <= tuple(mirrored.ravel())
        assert action == (0 if is_canonical else game.num_actions - 1)


def test_sums_that_float32_cannot_hold_are_refused(case):
    game, _, _, _, quantized = case
    params = jax.tree.map(np.copy, quantized.variables["params"])
    params["Dense_1"]["bias"][0] = EXACT
    with pytest.raises(ValueError, match="a sum in the layer Dense_1 .* use a narrower network"):
        make_quantized(game, {"params": params}, "relative", quantized.network.symmetric)


def test_a_quantized_network_cannot_be_trained(case):
    _, _, _, _, quantized = case
    with pytest.raises(ValueError, match="cannot be trained"):
        quantized.network.train(quantized.variables, None, None)
    assert quantized.network.init(jax.random.key(0)) is quantized.variables


def test_other_networks_are_refused():
    game = azjax.make("tic_tac_toe")
    network = make_network(ResNetConfig(width=16, head_hidden=8), game)
    with pytest.raises(ValueError, match="cannot be quantized: use an MLP"):
        quantize(game, network, network.init(jax.random.key(0)), positions(game, 8))


@pytest.mark.slow
@pytest.mark.parametrize("name", pretrained.names())
def test_shipped_players_give_equal_bits_in_10_000_positions(name):
    player = azjax.load(name)
    variables = player.parts.network.init(jax.random.key(0))
    states = positions(player.game, 10_000, seed=5, plies=30)
    planes = jax.vmap(lambda state: player.game.observe(state, player.parts.network.encoding))
    planes, symmetric = planes(states), player.parts.network.symmetric
    results = [reference(player.game, player.parts.network, variables, np.asarray(planes))]
    for dtype in ("float32", "bfloat16"):
        network = make_quantized(
            player.game, variables, player.parts.network.encoding, symmetric, dtype
        )
        results.append(jax.jit(network.infer)(network.fold(variables), planes))
    for expected, *others in zip(*results, strict=True):
        for other in others:
            np.testing.assert_array_equal(other, expected)
