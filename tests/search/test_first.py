"""Gumbel's first visits, evaluated in one call: the same search as one after the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games.base import init_batch
from azjax.search import Gumbel, make_search
from azjax.search import first as firsts
from azjax.search.evaluators import Evaluator, uniform_evaluator
from tables import BATCH, bench, run


@pytest.fixture(autouse=True)
def together(monkeypatch):
    """Evaluates together wherever possible."""
    monkeypatch.setattr(firsts, "_ROWS_PER_CALL", 10**6)


def batches(solution):
    """Batches of positions that are over or have at least 1, 2, 3 or 4 legal actions."""
    legal = solution.legal.sum(axis=1)
    for least in (1, 2, 3, 4):
        over, alive = np.flatnonzero(legal == 0), np.flatnonzero(legal >= least)
        fewest = alive[np.argsort(legal[alive], kind="stable")]
        rows = np.resize(np.concatenate([over[:3], fewest[:3], alive[:: len(alive) // 90]]), BATCH)
        yield jax.tree.map(lambda leaf, rows=rows: leaf[rows], solution.states)


def test_the_first_visits_together_make_the_same_tree(solution):
    """With random evaluators as well, and with noise in half of the rows."""
    table, noise = bench("tic_tac_toe").random_table(), np.arange(BATCH) % 2 == 0
    for states in batches(solution):
        found = [
            run(Gumbel(rows_together=rows), table, states, seed=1, luck=0.5, add_noise=noise)
            for rows in (2 * 9 * BATCH, 0)
        ]
        for together, alone in zip(*map(jax.tree.leaves, found), strict=True):
            np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("rows_per_call", "with_full_column"), [(10**6, 12), (0, 17)])
def test_sixteen_simulations_of_connect_four_take_eleven_calls(
    monkeypatch, rows_per_call, with_full_column
):
    """One for the roots, one for all seven columns, and nine; a finished game changes nothing."""
    monkeypatch.setattr(firsts, "_ROWS_PER_CALL", rows_per_call)
    game, calls = games.make("connect_four"), []
    uniform = uniform_evaluator(game)

    def evaluate(params, keys, states):
        jax.debug.callback(lambda: calls.append(1))
        return uniform(params, keys, states)

    search = jax.jit(
        make_search(Gumbel(num_simulations=16, rows_together=14), game, Evaluator(evaluate))
    )
    step = jax.jit(jax.vmap(game.step))

    def count(moves):
        """Calls for two positions: the first of a game, and the one after the moves."""
        after, first = init_batch(game, 1), init_batch(game, 1)
        for column in moves:
            after = step(after, jnp.full(1, column))[0]
        states = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), first, after)
        calls.clear()
        jax.block_until_ready(search(None, jax.random.key(0), states))
        jax.effects_barrier()
        return len(calls)

    assert count([]) == 11
    assert count([0, 1, 0, 1, 0, 1, 0]) == 11  # Four in column 0: over.
    assert count([0] * 6) == with_full_column  # Six columns are left.
