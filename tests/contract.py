"""The contract of players, and the positions in which it is checked."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import guard
from azjax.games.base import random_action, where
from tables import bench

ROWS = 8


@functools.cache
def some_states(name, count, finished=0):
    """Positions after a random number of random moves; the last few are played to the end."""
    game = bench(name).game
    key_length, key_moves = jax.random.split(jax.random.key(0))
    lengths = jax.random.randint(key_length, (count,), 0, game.max_plies)

    @jax.vmap
    def wander(row, key, length):
        def move(state, ply):
            action = random_action(game, jax.random.fold_in(key, ply), state)
            moved, _ = game.step(state, action)
            stops = (game.is_over(moved) | (ply >= length)) & (row < count - finished)
            return where(stops, state, moved), None

        return jax.lax.scan(move, game.init(), jnp.arange(game.max_plies))[0]

    rows = jnp.arange(count)
    with guard.sharing():
        return jax.device_get(jax.jit(wander)(rows, jax.random.split(key_moves, count), lengths))


def rows_of(states, rows):
    return jax.tree.map(lambda leaf: leaf[rows], states)


def ask(agent, states, seed=0, level=0):
    """The decisions of a player; tests that ask the same player share its program."""
    act = jax.jit(agent.act, compiler_options={"xla_backend_optimization_level": level})
    with guard.sharing():
        return jax.device_get(act(agent.params, jax.random.key(seed), states))


def same(left, right):
    return all(map(np.array_equal, jax.tree.leaves(left), jax.tree.leaves(right)))


def assert_policies(policies, legal):
    assert (policies >= 0).all()
    assert not policies[~legal].any()
    np.testing.assert_allclose(policies.sum(axis=1), 1, atol=1e-5)


def assert_contract(agent, name, fields):
    """Checks a player; `fields` are those of its decisions other than action and weights."""
    game, states = bench(name).game, some_states(name, ROWS, finished=1)
    decision = ask(agent, states)
    assert {field for field, leaf in decision._asdict().items() if leaf is not None} == {
        *("action", "weights"),
        *fields,
    }
    found = rows_of(decision, slice(ROWS - 1))  # The row of the finished game is undefined.
    legal = np.asarray(jax.vmap(game.legal_actions)(states))[:-1]
    assert legal[np.arange(ROWS - 1), found.action].all()
    assert_policies(found.weights, legal)
    if found.prior is not None:
        assert_policies(found.prior, legal)
    for outcomes in (found.value, found.q_values):
        assert outcomes is None or (abs(outcomes) <= 1).all()
    if agent.deterministic:
        assert same(found, rows_of(ask(agent, states, seed=1), slice(ROWS - 1)))
        for row in (0, 4):  # Independent of the rest of the batch.
            alone = ask(agent, rows_of(states, np.full(ROWS, row)))
            assert same(alone, rows_of(decision, np.full(ROWS, row)))
