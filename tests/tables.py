"""Searches with a table as the evaluator, so that tests can set every output.

The table is an argument of the compiled search, which compiles once for all tables.
"""

import functools
from typing import NamedTuple

import jax
import numpy as np

import misere_pile
from azjax import games
from azjax.games.base import Game
from azjax.games.tic_tac_toe import from_board
from azjax.search import make_search

BATCH = 256  # One size, so each search compiles once.

# For programs compared bit for bit: at level 0, XLA may round one formula in several ways.
AS_IN_TRAINING = {"xla_backend_optimization_level": 1}


class Table(NamedTuple):
    """The outputs of a table evaluator; rows are indexed by position numbers."""

    logits: np.ndarray  # float32 [R, A]
    values: np.ndarray  # float32 [R]


class Bench(NamedTuple):
    """A game with numbered positions, for evaluators that are tables."""

    game: Game
    weights: np.ndarray  # int32 [H * W], of the cells.
    rows: int

    def number(self, board, player):
        """The row of a board `[..., H * W]` with a player to move."""
        cells = (board.astype(np.int32) + 1) * self.weights.reshape((1,) * (board.ndim - 1) + (-1,))
        return (2 * cells.sum(axis=-1) + player) % self.rows

    def evaluate(self, table, key, states):
        del key
        row = self.number(states.board, states.player)
        return table.logits[row], table.values[row]

    def random_table(self, seed=0):
        rng = np.random.default_rng(seed)
        logits = rng.normal(size=(self.rows, self.game.num_actions))
        return Table(np.float32(logits), np.float32(rng.uniform(-1, 1, self.rows)))

    def constant_table(self, value):
        logits = np.zeros((self.rows, self.game.num_actions), np.float32)
        return Table(logits, np.full(self.rows, value, np.float32))


@functools.cache
def bench(name):
    if name == "connect_four":  # Several positions share a row.
        weights = np.random.default_rng(0).integers(1, 2**20, 42)
        return Bench(games.make(name), weights.astype(np.int32), 4096)
    game = misere_pile.make() if name == "misere_pile" else games.make(name)
    cells = np.prod(game.board_shape)
    return Bench(game, 3 ** np.arange(cells, dtype=np.int32), 2 * 3**cells)


@functools.cache
def compiled(name, config, add_noise):
    search = make_search(config, bench(name).game, bench(name).evaluate)
    return jax.jit(functools.partial(search, add_noise=add_noise))


def run(config, table, states, *, name="tic_tac_toe", seed=0, temperature=0.0, add_noise=False):
    keys = jax.random.split(jax.random.key(seed), len(states.board))
    temperature = np.broadcast_to(np.float32(temperature), len(keys))
    result = compiled(name, config, add_noise)(table, keys, states, temperature)
    return jax.tree.map(np.asarray, result)


def all_boards(cells):
    """Every way to fill some cells with 1, -1 or 0."""
    return np.indices((3,) * cells).reshape(cells, -1).T - 1


def repeat(*boards):
    """Positions of tic-tac-toe, repeated to a batch."""
    states = [jax.device_get(from_board(board)) for board in boards]
    return jax.tree.map(lambda *leaves: np.resize(leaves, (BATCH, *leaves[0].shape)), *states)
