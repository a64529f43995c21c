"""Long searches: all loops, and the search of mctx compared with that of azjax."""

import functools

import jax
import mctx
import numpy as np

from azjax import games
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.search import PUCT, Gumbel, MctxPolicy, make_search
from azjax.search.evaluators import network_evaluator
from tables import LOOPS, assert_equal, bench, search_by


def test_all_loops_find_the_same_where_a_player_moves_twice():
    """In Othello, players pass; these trees reach the end of the game."""
    game = games.make("othello:4")
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8), game)
    larger = jax.tree.map(lambda leaf: 3 * leaf, network.init(jax.random.key(3)))  # Outputs differ.
    states = jax.device_get(jax.jit(lambda: init_batch(game, 8))())
    given = game, network_evaluator(game, network), network.fold(larger), states
    ours, *others = (search_by(loop, PUCT(num_simulations=150), *given) for loop in LOOPS)
    for loop, theirs in zip([*LOOPS][1:], others, strict=True):
        assert_equal(ours, theirs, loop)


def test_gumbel_equals_the_policy_of_mctx(some_states):
    """Without rescaled Q; mctx decides between scores closer than 1e-7 by chance."""
    a_bench = bench("tic_tac_toe")
    completed = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        **{"value_scale": 0.25, "maxvisit_init": 50.0, "rescale_values": False},
    )
    policy = functools.partial(
        mctx.gumbel_muzero_policy, max_num_considered_actions=3, qtransform=completed
    )

    def find(algorithm):
        search = jax.jit(make_search(algorithm, a_bench.game, a_bench.evaluate))
        keys = jax.random.split(jax.random.key(0), len(some_states.board))
        return jax.device_get(search(a_bench.random_table(), keys, some_states))

    ours = find(Gumbel(max_considered_actions=3, value_scale=0.5))
    theirs = find(MctxPolicy(policy))
    equal = (ours.visit_counts == theirs.visit_counts).all(axis=1)
    assert equal.mean() > 0.98
    most = theirs.visit_counts.max(axis=1, keepdims=True)
    clear = equal & ((theirs.visit_counts == most).sum(axis=1) == 1)
    np.testing.assert_array_equal(ours.action[clear], theirs.action[clear])
    weights = ours.action_weights[equal], theirs.action_weights[equal]
    np.testing.assert_allclose(*weights, atol=1e-5)
