"""All loops, and mctx's policies; `tests/system` has longer searches."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.games.base import play
from azjax.search import (
    NEVER,
    Gumbel,
    MctxPolicy,
    mctx_fns,
    rollout_evaluator,
)
from guard import sharing
from tables import BATCH, assert_equal, bench, repeat, run, search_table

OPEN = (1, -1, 0, 0, 0, 0, 0, 0, 0)  # X to move.


@pytest.fixture(scope="module")
def search(solution):
    """By a loop, in late positions; random outputs of the evaluator give keys an effect."""
    late = np.flatnonzero((solution.states.board != 0).sum(axis=1) > 5)
    rows = np.random.default_rng(0).choice(late, BATCH, replace=False)
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    given = Gumbel(num_simulations=16), "tic_tac_toe", states
    return functools.cache(lambda loop: search_table(loop, *given, luck=0.5))


@pytest.mark.parametrize("loop", ["paths", "mctx"])
def test_all_loops_find_the_same_bit_for_bit(search, loop):
    with sharing():
        ours, theirs = search("loop"), search(loop)
    assert_equal(ours, theirs, loop)
    assert (theirs.tree.node_visits[:, 1:] * theirs.tree.embeddings.over[:, 1:] > 1).any()


def test_the_functions_keep_the_game_s_conventions(solution):
    """For every action in many positions: legal, illegal and in finished games."""
    a_bench, states = bench("tic_tac_toe"), solution.states
    game, table, size = a_bench.game, a_bench.random_table(), len(states.board)
    fns = mctx_fns(game, a_bench.evaluate)

    @jax.jit
    def compute(table, states):
        actions = jnp.arange(9)[:, None].repeat(size, 1)
        one = functools.partial(fns.recurrent_fn, table, jax.random.key(0))
        played = jax.vmap(lambda action: jax.vmap(functools.partial(play, game))(states, action))
        later = jax.vmap(lambda action: one(action, states))(actions)
        root = fns.root(table, jax.random.key(0), states)
        return root, fns.invalid_actions(states), later, played(actions)

    with sharing():
        root, invalid, (output, after), expected = jax.device_get(compute(table, states))
    over, legal = states.over, (states.board == 0) & ~states.over[:, None]
    logits, values = a_bench.evaluate(table, None, states)
    np.testing.assert_array_equal(root.prior_logits, np.where(legal, logits, NEVER))
    np.testing.assert_array_equal(root.value, np.where(over, 0, values))
    np.testing.assert_array_equal(invalid, ~legal)
    jax.tree.map(np.testing.assert_array_equal, after, expected.state)
    same = after.player == states.player
    np.testing.assert_array_equal(output.discount, np.where(after.over, 0, np.where(same, 1, -1)))
    np.testing.assert_array_equal(output.reward, expected.reward)
    assert set(np.unique(output.reward[:, ~over])) == {0, 1} and not output.reward[:, over].any()
    assert (output.value[after.over] == 0).all() and (output.value[~after.over] != 0).all()
    allowed = (after.board == 0) & ~after.over[..., None]
    np.testing.assert_array_equal(output.prior_logits != NEVER, allowed)


def test_each_position_has_a_key_for_its_rollout(tic_tac_toe):
    fns, states = mctx_fns(tic_tac_toe, rollout_evaluator(tic_tac_toe)), repeat([0] * 9)
    with sharing():
        values = jax.jit(lambda key: fns.root(None, key, states).value)(jax.random.key(1))
    assert set(np.asarray(values)) == {-1, 0, 1}


# mctx's policies as algorithms; one without noise is compared with azjax in `tests/system`.

MUZERO = MctxPolicy(mctx.muzero_policy, num_simulations=8)


def test_a_policy_explores_only_at_a_temperature():
    """mctx breaks ties at random; without exploration, the key has no effect."""
    result = run(MUZERO, bench("tic_tac_toe").constant_table(0), repeat([0] * 9))
    assert len(np.unique(result.visit_counts, axis=0)) == len(np.unique(result.action)) == 1
    result = run(MUZERO, bench("tic_tac_toe").random_table(), repeat([0] * 9, OPEN))
    most = result.visit_counts.max(axis=1)
    np.testing.assert_array_equal(result.visit_counts[np.arange(BATCH), result.action], most)
    drawn = run(MUZERO, bench("tic_tac_toe").constant_table(0), repeat(OPEN), temperature=1.0)
    assert len(np.unique(drawn.action)) > 1


def test_a_policy_gets_its_noise_where_the_search_adds_some(some_states):
    table, policy = bench("tic_tac_toe").random_table(), mctx.muzero_policy
    quiet, noisy = (
        MctxPolicy(functools.partial(policy, dirichlet_fraction=share), 8) for share in (0.0, 1.0)
    )
    prior = run(quiet, table, some_states, add_noise=True).prior
    np.testing.assert_allclose(run(noisy, table, some_states).prior, prior, atol=1e-6)
    drawn = run(noisy, table, some_states, add_noise=True).prior
    assert (abs(drawn - prior) > 0.1).any()
