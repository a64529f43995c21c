# mctx's dataclasses hide their fields from type checkers.
# pyright: reportCallIssue=false
"""Bridge to mctx: azjax's games with mctx's policies, and azjax's algorithms in mctx's loop.

`mctx_fns` makes the arguments of `mctx.gumbel_muzero_policy`, other policies and `mctx.search` from
a game and an evaluator. `grow_by_mctx` is the engine `mctx`, which runs `mctx.search` instead of
`simulate`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax._promotion import mixing
from azjax.games.base import Game, State, batch_keys, check_batch, where
from azjax.search.evaluators import Evaluator, Function, checked
from azjax.search.simulate import Expansion, Model, Simulator, evaluate_states, expand
from azjax.search.tree import NEVER, NO_PARENT, ROOT, UNVISITED, Tree

# The fields that mctx writes when it expands a finished game, with their initial values: fields of
# the new node `[B, N, ...]`, and fields of the finished game's actions `[B, N, A]`.
_NODES = {
    "node_visits": 0,
    "raw_values": 0,
    "node_values": 0,
    "parents": NO_PARENT,
    "action_from_parent": -1,
    "children_prior_logits": 0,
    "embeddings": 0,
}
_EDGES = {
    "children_index": UNVISITED,
    "children_visits": 0,
    "children_rewards": 0,
    "children_discounts": 0,
    "children_values": 0,
}


class MctxFns(NamedTuple):
    """A game and an evaluator as arguments of mctx's policies.

    All functions raise ValueError, while tracing, if the states are not a batch of the game, or the
    keys or the evaluator's outputs have the wrong shapes.

    Attributes:
      root: `(params, keys, states [B, ...]) -> mctx.RootFnOutput`; one key, or `[B]` keys.
      recurrent_fn: `(params, key, actions [B], states) -> (mctx.RecurrentFnOutput, states)`. The
        reward is the mover's, in [-1, 1]. The discount is -1 when the turn passes, 1 when the same
        player moves again, and 0 once the game is over. The value is for the player to move, and 0
        once the game is over. Logits of illegal actions are `NEVER`, which is finite.
      invalid_actions: `states -> bool [B, A]`, True = not allowed. Policies need it, since they do
        not derive it from the logits.
    """

    root: Callable[[Any, jax.Array, State], mctx.RootFnOutput]
    recurrent_fn: Callable[..., tuple[mctx.RecurrentFnOutput, State]]
    invalid_actions: Callable[[State], jax.Array]


def mctx_fns(game: Game, evaluate: Evaluator | Function) -> MctxFns:
    """Makes the arguments of mctx's policies from a game and an evaluator.

    ```python
    fns = azjax.search.mctx_fns(game, evaluate)
    output = mctx.gumbel_muzero_policy(
        params,
        key,
        root=fns.root(params, key_root, states),
        recurrent_fn=fns.recurrent_fn,
        num_simulations=32,
        invalid_actions=fns.invalid_actions(states),
    )
    ```

    Args:
      game: the rules.
      evaluate: any evaluator; mctx passes `params` to it. mctx passes one key per batch, which is
        split. Values of a random evaluator therefore depend on the batch.

    Raises:
      ValueError: if the evaluator is not callable.
    """
    evaluate = checked(game, evaluate)

    def root(params, keys, states):
        keys = batch_keys(keys, check_batch(game, states))
        logits, value = evaluate_states(Model(game, evaluate, params), keys, states)
        return mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)

    def recurrent_fn(params, key, actions, states):
        keys = batch_keys(key, check_batch(game, states))
        expansion = expand(Model(game, evaluate, params), keys, actions, states)
        return _recurrent_output(expansion), expansion.states

    def invalid_actions(states):
        check_batch(game, states)
        return ~jax.vmap(game.legal_actions)(states)

    return MctxFns(root, recurrent_fn, invalid_actions)


class _Embedding(NamedTuple):
    """mctx's embedding of a node: the state, and the number of the current simulation.

    `recurrent_fn` folds the number, which mctx does not pass, into each position's key.
    """

    states: State
    simulation: jax.Array


def grow_by_mctx(
    simulator: Simulator, tree: Tree, first: int | jax.Array, last: int | jax.Array
) -> Tree:
    """Adds simulations `first` to `last - 1` to every tree `[B, ...]` with `mctx.search`.

    The resulting trees equal those of `simulate`. mctx also expands finished games, where moves
    change nothing; each such node is removed after its simulation.

    Args:
      simulator: shared inputs of the simulations.
      tree: the trees after `first` simulations.
      first: the number of the first simulation.
      last: one more than the number of the last simulation; at most `N - 1`.
    """
    selection, keys = simulator.selection, simulator.keys
    most = tree.node_visits.shape[1] - 1

    def recurrent_fn(params, key, actions, embedding):
        del params, key
        numbered = jax.vmap(jax.random.fold_in)(keys, embedding.simulation)
        expansion = simulator.expand(numbered, actions, embedding.states)
        return _recurrent_output(expansion), embedding._replace(states=expansion.states)

    def loop(_first, _last, simulate, carry):
        key, root_only = carry

        def step(i, carry):
            key, tree = carry
            numbers = jnp.full_like(tree.embeddings.simulation, i)
            key, tree = simulate(i, (key, _number(tree, tree.embeddings.states, numbers)))
            return key, _remove_below_finished(tree, i + 1)

        start = _number(tree, tree.embeddings, root_only.embeddings.simulation)
        return jax.lax.fori_loop(first, last, step, (key, start))

    states = jax.tree.map(lambda leaf: leaf[:, ROOT], tree.embeddings)
    grown = mixing(mctx.search)(
        None,
        jax.random.fold_in(keys[0], most),  # Unused: selection draws no random numbers.
        root=mctx.RootFnOutput(
            prior_logits=tree.children_prior_logits[:, ROOT],
            value=tree.raw_values[:, ROOT],
            embedding=_Embedding(states, jnp.zeros(keys.shape[0], jnp.int32)),
        ),
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=lambda key, tree, node: selection.at_root(tree, node),
        interior_action_selection_fn=lambda key, tree, node, depth: selection.below(tree, node),
        num_simulations=most,
        invalid_actions=tree.root_invalid_actions,
        extra_data=tree.extra_data,
        loop_fn=loop,
    )
    return grown.replace(embeddings=grown.embeddings.states)


def _number(tree: Tree, states: State, simulation: jax.Array) -> Tree:
    return tree.replace(embeddings=_Embedding(states, simulation))


def _remove_below_finished(tree: Tree, node: jax.Array) -> Tree:
    """Removes node number `node` from the trees where its parent is a finished game.

    Children of a finished root stay, as in `simulate`.
    """
    batch = jnp.arange(tree.parents.shape[0])
    parent = tree.parents[:, node]
    is_over = ~jnp.any(tree.children_prior_logits[batch, parent] != NEVER, axis=-1)
    is_below = is_over & (parent > ROOT)

    def clear(name, empty, index):
        def write(leaf):
            current = leaf[batch, index]
            cleared = where(is_below, jnp.full_like(current, empty), current)
            return leaf.at[batch, index].set(cleared)

        return jax.tree.map(write, getattr(tree, name))

    nodes = {name: clear(name, empty, node) for name, empty in _NODES.items()}
    edges = {name: clear(name, empty, parent) for name, empty in _EDGES.items()}
    return tree.replace(**nodes, **edges)


def _recurrent_output(expansion: Expansion) -> mctx.RecurrentFnOutput:
    return mctx.RecurrentFnOutput(
        reward=expansion.reward,
        discount=expansion.discount,
        prior_logits=expansion.logits,
        value=expansion.value,
    )
