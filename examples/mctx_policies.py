"""mctx's policies as searches of azjax: Gumbel MuZero, MuZero, and a custom one.

`azjax.search.MctxPolicy` makes an algorithm from a policy, for searches, players and training.
"""

import functools

import jax
import jax.numpy as jnp
import mctx

import azjax
from azjax.games import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.search import MctxPolicy, make_search, network_evaluator


def boltzmann(
    params, rng_key, root, recurrent_fn, num_simulations, invalid_actions, temperature=1.0
) -> mctx.PolicyOutput:
    """Selects by `exp(logit + 5 Q)` in every node, and draws the action by visits."""

    def draw(key, tree, node, depth=None):
        visited = tree.children_visits[node] > 0
        q = jnp.where(visited, tree.qvalues(node), tree.node_values[node])
        return jax.random.categorical(key, tree.children_prior_logits[node] + 5 * q)

    key_search, key_action = jax.random.split(rng_key)
    tree = mctx.search(
        params,
        key_search,
        root=root,
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=draw,
        interior_action_selection_fn=draw,
        num_simulations=num_simulations,
        invalid_actions=invalid_actions,
    )
    weights = tree.summary().visit_probs
    logits = jnp.log(jnp.maximum(weights, 1e-30)) / jnp.maximum(temperature, 1e-3)
    action = jax.random.categorical(key_action, logits)
    output = {"action": action, "action_weights": weights, "search_tree": tree}
    return mctx.PolicyOutput(**output)


if __name__ == "__main__":
    game = azjax.make("connect_four")
    network = make_network(MLPConfig(hidden=(64,)), game)
    params = network.fold(network.init(jax.random.key(0)))  # Or `azjax.load(run_dir).params`.
    states, key = init_batch(game, 8), jax.random.key(1)
    noisy = functools.partial(mctx.muzero_policy, dirichlet_fraction=0.5)
    for policy in (mctx.gumbel_muzero_policy, noisy, boltzmann):
        algorithm = MctxPolicy(policy, num_simulations=32)
        search = jax.jit(make_search(algorithm, game, network_evaluator(game, network)))
        best = search(params, key, states, 0.0, False).action
        explored = search(params, key, states, 1.0, True).action  # Temperature and noise.
        print("best:", best, "in self-play:", explored)
    print("For self-play: Parts(search=MctxPolicy(boltzmann, num_simulations=32), ...)")
