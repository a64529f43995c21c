"""The bridge to mctx: games for mctx's policies, and mctx's loop for azjax's algorithms.

`mctx_fns` makes a game and an evaluator into what `mctx.gumbel_muzero_policy`, its other policies
and `mctx.search` take. `grow_by_mctx` is the engine `mctx`: `mctx.search` in place of `simulate`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax._promotion import mixing
from azjax.games.base import Game, State, batch_keys, check_batch, where
from azjax.search.evaluators import Evaluator, checked
from azjax.search.expand import Model, evaluate_states, expand
from azjax.search.simulate import Expansion, Simulator
from azjax.search.tree import NEVER, NO_PARENT, ROOT, UNVISITED, Tree

# Fields of a tree that mctx fills below a finished game, and what stands there before: those of the
# new node `[B, N, ...]`, and those of the finished game's own actions `[B, N, A]`.
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
    """A game and an evaluator, as mctx's policies take them.

    All raise ValueError, while tracing, if the states are not a batch of the game, the keys do not
    go with it, or the evaluator's outputs have other shapes.

    Attributes:
      root: `(params, keys, states [B, ...]) -> mctx.RootFnOutput`; keys are one, or `[B]`.
      recurrent_fn: `(params, key, actions [B], states) -> (mctx.RecurrentFnOutput, states)`. The
        reward is the mover's, in [-1, 1]; the discount is -1 when the turn passes, 1 when the same
        player moves again, and 0 once the game is over; the value is that of the player to move, 0
        once the game is over. Logits of illegal actions are `NEVER`, which is finite.
      invalid_actions: `states -> bool [B, A]`, True = not allowed. Hand it to the policies: they
        do not read it from the logits.
    """

    root: Callable[[Any, jax.Array, State], mctx.RootFnOutput]
    recurrent_fn: Callable[..., tuple[mctx.RecurrentFnOutput, State]]
    invalid_actions: Callable[[State], jax.Array]


def mctx_fns(game: Game, evaluate: Evaluator) -> MctxFns:
    """Makes a game and an evaluator into the arguments of mctx's policies.

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
      evaluate: any evaluator; mctx hands `params` to it. One that draws gets the one key that
        mctx has for a batch, split, so its values depend on the batch.

    Raises:
      ValueError: if the evaluator cannot be called.
    """
    evaluate = checked(game, evaluate)

    def root(params, keys, states):
        keys = batch_keys(keys, check_batch(game, states))
        logits, value = evaluate_states(Model(game, evaluate, params), keys, states)
        return _root_output(logits, value, states)

    def recurrent_fn(params, key, actions, states):
        keys = batch_keys(key, check_batch(game, states))
        expansion = expand(Model(game, evaluate, params), keys, actions, states)
        return _recurrent_output(expansion), expansion.states

    def invalid_actions(states):
        check_batch(game, states)
        return ~jax.vmap(game.legal_actions)(states)

    return MctxFns(root, recurrent_fn, invalid_actions)


class _Embedding(NamedTuple):
    """What mctx keeps in a node: the state, and the number of the simulation that is under way.

    mctx hands no number to `recurrent_fn`, and a position's own keys are folded with it.
    """

    states: State
    simulation: jax.Array


def grow_by_mctx(
    simulator: Simulator, tree: Tree, first: int | jax.Array, last: int | jax.Array
) -> Tree:
    """Adds simulations `first` to `last - 1` to every tree `[B, ...]` by the loop of `mctx.search`.

    The trees are those that `simulate` grows. mctx walks on below finished games, where moves
    change nothing; each such node is removed at once.

    Args:
      simulator: of the search.
      tree: the trees, with `first` simulations in them.
      first: the number of the first simulation.
      last: the number after the last one, at most `N - 1`.
    """
    selection, keys = simulator.selection, simulator.keys
    most = tree.node_visits.shape[1] - 1

    def recurrent_fn(params, key, actions, embedding):
        del params, key
        numbered = jax.vmap(jax.random.fold_in)(keys, embedding.simulation)
        expansion = simulator.expand(numbered, actions, embedding.states)
        return _recurrent_output(expansion), embedding._replace(states=expansion.states)

    def loop(_first, _last, simulate, carry):
        key, planted = carry

        def step(i, carry):
            key, tree = carry
            numbers = jnp.full_like(tree.embeddings.simulation, i)
            key, tree = simulate(i, (key, _number(tree, tree.embeddings.states, numbers)))
            return key, _remove_below_finished(tree, i + 1)

        start = _number(tree, tree.embeddings, planted.embeddings.simulation)
        return jax.lax.fori_loop(first, last, step, (key, start))

    states = jax.tree.map(lambda leaf: leaf[:, ROOT], tree.embeddings)
    numbers = jnp.zeros(len(keys), jnp.int32)
    logits, value = tree.children_prior_logits[:, ROOT], tree.raw_values[:, ROOT]
    search: Any = mixing(mctx.search)
    grown = search(
        None,
        jax.random.fold_in(keys[0], most),  # Selections draw nothing, so none uses it.
        root=_root_output(logits, value, _Embedding(states, numbers)),
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
    """Removes the node of a number from the trees where its parent is a finished game.

    A root may be finished as well: its actions lead to finished games, which stay.
    """
    batch = jnp.arange(len(tree.parents))
    parent = tree.parents[:, node]
    is_over = ~jnp.any(tree.children_prior_logits[batch, parent] != NEVER, axis=-1)
    is_below = is_over & (parent > ROOT)

    def clear(name, empty, index):
        def write(leaf):
            found = leaf[batch, index]
            cleared = where(is_below, jnp.full_like(found, empty), found)
            return leaf.at[batch, index].set(cleared)

        return jax.tree.map(write, getattr(tree, name))

    nodes = {name: clear(name, empty, node) for name, empty in _NODES.items()}
    edges = {name: clear(name, empty, parent) for name, empty in _EDGES.items()}
    return tree.replace(**nodes, **edges)


def _root_output(logits: jax.Array, value: jax.Array, embedding: Any) -> mctx.RootFnOutput:
    output: Any = mctx.RootFnOutput
    return output(prior_logits=logits, value=value, embedding=embedding)


def _recurrent_output(expansion: Expansion) -> mctx.RecurrentFnOutput:
    output: Any = mctx.RecurrentFnOutput
    return output(
        reward=expansion.reward,
        discount=expansion.discount,
        prior_logits=expansion.logits,
        value=expansion.value,
    )
