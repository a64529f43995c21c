"""The playground in a browser: its players compute what they compute in Python, and it can be used."""

import base64
import dataclasses
import functools
import json
import pathlib

import jax
import numpy as np
import pytest

import azjax
from azjax import games
from azjax.games.base import init_batch
from azjax.players.oriented import oriented_overrides
from azjax.runs.pretrained import names
from azjax.viz import playground
from azjax.viz.positions import board_text

ROOT = pathlib.Path(__file__).parents[2]
PLAYERS = ["connect_four", "connect_four:5x4", "hex:4", "hex:6"]

# Evaluates positions, given by their texts, with the network of a packed player.
EVALUATE = """async ([packed, texts]) => {
  const { game, network } = await azjax.openShipped(packed);
  const bytes = (array) => btoa(String.fromCharCode(...new Uint8Array(array.buffer)));
  return texts.map((text) => {
    const { logits, value } = network.evaluate(game.read(text));
    return [bytes(logits), bytes(new Float32Array([value]))];
  });
}"""

# Chooses a move in each position.
CHOOSE = """async ([packed, texts]) => {
  const shipped = await azjax.openShipped(packed);
  return texts.map((text) => {
    const { action, isOverride } = shipped.choose(shipped.game.read(text));
    return [action, isOverride];
  });
}"""


@functools.cache
def positions(name, count):
    """`count` different unfinished positions of random games, `[count, ...]`."""
    game = games.make(name)
    rng, size = np.random.default_rng(0), 4 * count // game.max_plies + 40
    move = jax.jit(jax.vmap(lambda state, action: game.step(state, action)[0]))
    legal, over = (jax.jit(jax.vmap(f)) for f in (game.legal_actions, game.is_over))
    states, found = init_batch(game, size), []
    for _ in range(game.max_plies):
        found.append(jax.tree.map(lambda leaf: np.asarray(leaf)[~np.asarray(over(states))], states))
        actions = np.where(legal(states), rng.random((size, game.num_actions)), -1).argmax(axis=1)
        states = move(states, actions)
    every = jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)
    _, rows = np.unique(texts_of(every), return_index=True)
    chosen = rng.permutation(rows)[:count]
    assert len(chosen) == count
    return jax.tree.map(lambda leaf: leaf[chosen], every)


def texts_of(states):
    return ["".join(".XO"[cell] for cell in board) for board in np.asarray(states.board)]


def floats(texts):
    return np.stack([np.frombuffer(base64.b64decode(text), np.float32) for text in texts])


@pytest.mark.parametrize("name", PLAYERS)
def test_outputs_have_equal_bits(module, name):
    player = azjax.load(name)
    states = positions(name, 2000)
    texts = texts_of(states)
    logits, values = (np.asarray(output) for output in player.evaluate(states))
    found = module.evaluate(EVALUATE, [playground.pack_player(player), texts])
    found_logits, found_values = (floats(column) for column in zip(*found, strict=True))
    np.testing.assert_array_equal(found_logits.view(np.int32), logits.view(np.int32))
    np.testing.assert_array_equal(found_values[:, 0].view(np.int32), values.view(np.int32))


@pytest.mark.parametrize("name", ["connect_four", "connect_four:5x4", "hex:4"])
def test_moves_are_those_of_the_agent_with_its_table(module, name):
    """A table of random moves replaces those of the network, also in mirrored positions."""
    player = azjax.load(name)
    game, states = player.game, positions(name, 2000)
    some = jax.tree.map(lambda leaf: leaf[:300], states)
    rng, legal = np.random.default_rng(1), np.asarray(jax.vmap(game.legal_actions)(some))
    moves = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1)
    table = oriented_overrides(game, player.parts.network.encoding, *without_copies(game, some, moves))
    player = dataclasses.replace(player, overrides=table)
    expected = jax.jit(player.agent.act)(player.agent.params, jax.random.key(0), states).action
    found = module.evaluate(CHOOSE, [playground.pack_player(player), texts_of(states)])
    actions, listed = zip(*found, strict=True)
    np.testing.assert_array_equal(actions, expected)
    assert sum(listed[:300]) > 250 and sum(listed) < 1000


def without_copies(game, states, moves):
    """Removes positions of which a symmetric copy comes earlier."""
    cells = game.symmetries.cells
    boards = np.asarray(states.board)
    keys = [min(bytes(board[order]) for order in cells) for board in boards + 1]
    _, rows = np.unique(keys, return_index=True)
    return jax.tree.map(lambda leaf: leaf[rows], states), moves[rows]
