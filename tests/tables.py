"""Searches with a table as the evaluator, so that tests can set every output.

There is one compiled program for each algorithm and game, which all tests share. Its arguments
are the table, the settings that are floats, the noise and the faults of the evaluator.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import guard
import misere_pile
import reference
from azjax import games
from azjax.games.base import Game, where
from azjax.games.tic_tac_toe import from_board
from azjax.search import NEVER, make_search, paths, simulate
from reference import Position, mctx_loop

BATCH = 128  # One size, so each search compiles once.

# For programs compared bit for bit: at level 0, XLA may round one formula in several ways.
AS_IN_TRAINING = {"xla_backend_optimization_level": 1}

# What an evaluator may return instead of `(logits [B, A], values [B])`.
FAULTS = {
    "none": lambda logits, values: (logits, values),
    "all logits -inf": lambda logits, values: (jnp.full_like(logits, -jnp.inf), values),
    "all logits lowest": lambda logits, values: (jnp.full_like(logits, NEVER), values),
    "logits NaN": lambda logits, values: (jnp.full_like(logits, jnp.nan), values),
    "one logit NaN": lambda logits, values: (logits.at[:, 1].set(jnp.nan), values),
    "one logit inf": lambda logits, values: (logits.at[:, -1].set(jnp.inf), values),
    "values NaN": lambda logits, values: (logits, jnp.full_like(values, jnp.nan)),
    "some values NaN": lambda logits, values: (logits, jnp.where(values > 0, jnp.nan, values)),
}


class Table(NamedTuple):
    """The outputs of a table evaluator; rows are indexed by position numbers."""

    logits: np.ndarray  # float32 [R, A]
    values: np.ndarray  # float32 [R]


class Faulty(NamedTuple):
    """A table whose outputs may be random, and wrong in some rows of a batch."""

    table: Table
    luck: np.ndarray  # float32 [], the weight of random numbers in all outputs.
    fault: np.ndarray  # int32 [], an index of `FAULTS`.
    is_hurt: np.ndarray  # bool [B], the rows with the fault.


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

    def evaluate_faulty(self, faulty, keys, states):
        logits, values = self.evaluate(faulty.table, None, states)
        shape = (logits.shape[1] + 1,)
        drawn = jax.vmap(lambda key: jax.random.uniform(key, shape, minval=-1))(keys)
        drawn = faulty.luck * drawn
        outputs = logits + drawn[:, 1:], jnp.clip(values + drawn[:, 0], -1, 1)
        is_hurt = jnp.resize(faulty.is_hurt, values.shape)  # Several actions of every root.
        return where(is_hurt, jax.lax.switch(faulty.fault, [*FAULTS.values()], *outputs), outputs)

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
def compiled(name, config):
    """`(floats, evaluator's parameters, keys, states, temperature, add_noise) -> result`."""

    def search(floats, *arguments):
        algorithm = dataclasses.replace(config, **floats)
        return make_search(algorithm, bench(name).game, bench(name).evaluate_faulty)(*arguments)

    return jax.jit(search)


def make_faulty(table, size, luck=0.0, fault="none", is_hurt=False):
    number = np.int32([*FAULTS].index(fault))
    return Faulty(table, np.float32(luck), number, np.broadcast_to(is_hurt, size))


def run(config, table, states, name="tic_tac_toe", seed=0, temperature=0.0, add_noise=False, **how):
    """The result of a search on the host; `seed` may be an array of keys."""
    size = len(states.board)
    keys = jax.random.split(jax.random.key(seed), size) if isinstance(seed, int) else seed
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    floats = {name: np.float32(value) for name, value in values.items() if type(value) is float}
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    static = dataclasses.replace(config, **{name: defaults[name] for name in floats})
    faulty = make_faulty(table, size, **how)
    each = np.broadcast_to(np.float32(temperature), size), np.broadcast_to(add_noise, size)
    with guard.sharing():
        result = compiled(name, static)(floats, faulty, keys, states, *each)
    return jax.tree.map(np.asarray, result)


def textbook(algorithm, name, table, states, *arguments):
    """Results of a search of `reference`, with its arguments one row at a time.

    It ends with the shortest of the arguments.
    """
    rules, a_bench = getattr(reference, name), bench(name)
    logits, values = table.logits.tolist(), table.values.tolist()

    def evaluate(position):
        row = a_bench.number(np.array(position.board), position.player)
        return logits[row], values[row]

    rows = zip(states.board.tolist(), states.player.tolist(), *arguments, strict=False)
    return [
        algorithm.search(rules, evaluate, Position(tuple(board), player, False), *rest)
        for board, player, *rest in rows
    ]


def pile_states():
    """The unfinished positions of the pile, with each player to move."""
    boards = np.tril(np.ones((5, 5), np.int8), -1)
    boards = np.concatenate([boards, boards])
    return misere_pile.State(boards, np.repeat(np.int8([0, 1]), 5), np.zeros(10, bool))


def batch(*boards):
    """Positions of tic-tac-toe."""
    states = [jax.device_get(from_board(board)) for board in boards]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def repeat(*boards):
    """The same, repeated to `BATCH` positions."""
    return jax.tree.map(lambda leaf: np.resize(leaf, (BATCH, *leaf.shape[1:])), batch(*boards))


# Every loop with equal results, rounded as in training, to compare bit for bit.

LOOPS = {"loop": simulate.grow, "paths": paths.grow, "mctx": mctx_loop.grow}


def assert_equal(ours, theirs, loop="paths"):
    """Compares every field of the results and of their trees; NaN equals NaN.

    mctx's trees have more nodes, below finished games.
    """
    if loop == "mctx":
        ours, theirs = ours._replace(tree=None), theirs._replace(tree=None)
    paths = jax.tree_util.tree_leaves_with_path(ours)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for (path, expected), found in zip(paths, jax.tree.leaves(theirs), strict=True):
        assert expected.dtype == found.dtype
        np.testing.assert_array_equal(found, expected, err_msg=jax.tree_util.keystr(path))


def search_by(loop, config, game, evaluate, params, states):
    """The result of one loop; half of the rows have noise, and half a temperature."""
    size = len(states.board)
    temperature = np.arange(size, dtype=np.float32) % 2
    keys, noise = jax.random.split(jax.random.key(7), size), np.arange(size) % 4 < 2
    search = make_search(config, game, evaluate, LOOPS[loop])
    search = jax.jit(search, compiler_options=AS_IN_TRAINING)
    return jax.device_get(search(params, keys, states, temperature, noise))


def search_table(loop, config, name, states, luck):
    """The same with a random table as the evaluator."""
    a_bench, size = bench(name), len(states.board)
    params = make_faulty(a_bench.random_table(), size, luck)
    return search_by(loop, config, a_bench.game, a_bench.evaluate_faulty, params, states)
