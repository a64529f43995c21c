"""mctx's policies with a game and a network of azjax: Gumbel MuZero, MuZero, and a custom one.

From a game and an evaluator, `azjax.search.mctx_fns` makes the functions that mctx needs.
"""

import functools

import jax
import jax.numpy as jnp
import mctx
from jax.typing import ArrayLike

import azjax
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.search import MctxFns
from azjax.search.evaluators import network_evaluator


def gumbel(fns: MctxFns, params, key, states) -> ArrayLike:
    """Returns the actions `[B]` of Gumbel MuZero."""
    key_root, key = jax.random.split(key)
    output = mctx.gumbel_muzero_policy(
        params,
        key,
        fns.root(params, key_root, states),
        fns.recurrent_fn,
        num_simulations=32,
        invalid_actions=fns.invalid_actions(states),
    )
    return output.action


def muzero(fns: MctxFns, params, key, states) -> ArrayLike:
    """Returns the actions `[B]` of MuZero, drawn by visits."""
    key_root, key = jax.random.split(key)
    output = mctx.muzero_policy(
        params,
        key,
        fns.root(params, key_root, states),
        fns.recurrent_fn,
        num_simulations=32,
        invalid_actions=fns.invalid_actions(states),
    )
    return output.action


def boltzmann(fns: MctxFns, params, key, states, temperature: float = 0.2) -> ArrayLike:
    """Selects by `exp(logit + Q / temperature)` in every node; returns the most visited actions."""

    def draw(key, tree, node, depth=None):
        visited = tree.children_visits[node] > 0
        q = jnp.where(visited, tree.qvalues(node), tree.node_values[node])
        return jax.random.categorical(key, tree.children_prior_logits[node] + q / temperature)

    key_root, key = jax.random.split(key)
    tree = mctx.search(
        params,
        key,
        root=fns.root(params, key_root, states),
        recurrent_fn=fns.recurrent_fn,
        root_action_selection_fn=draw,
        interior_action_selection_fn=draw,
        num_simulations=32,
        invalid_actions=fns.invalid_actions(states),
    )
    return jnp.argmax(tree.summary().visit_counts, axis=-1)


if __name__ == "__main__":
    game = azjax.make("connect_four")
    network = make_network(MLPConfig(hidden=(64,)), game)
    params = network.fold(network.init(jax.random.key(0)))  # Or `azjax.load(run_dir).params`.
    fns = azjax.search.mctx_fns(game, network_evaluator(game, network))
    states, keys = init_batch(game, 8), jax.random.split(jax.random.key(1), 3)
    for policy in (gumbel, muzero, boltzmann):
        act = jax.jit(functools.partial(policy, fns))
        many = jax.jit(jax.vmap(functools.partial(policy, fns), in_axes=(None, 0, None)))
        print(policy.__name__, act(params, keys[0], states), many(params, keys, states).shape)
