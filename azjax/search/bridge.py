"""The bridge to mctx: games for mctx's policies, and mctx's loop for azjax's algorithms.

`mctx_fns` makes a game and an evaluator into what `mctx.gumbel_muzero_policy`, its other policies
and `mctx.search` take. `grow_by_mctx` is the engine `mctx`: `mctx.search` in place of `simulate`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.evaluators import Evaluator, checked
from azjax.game import Game, State, batch_keys, check_batch, where
from azjax.promotion import mixing
from azjax.search.algorithm import Selection
from azjax.search.expand import evaluate_states, expand
from azjax.search.simulate import Expansion
from azjax.search.tree import NEVER, NO_PARENT, ROOT, Tree, legal_actions

# Fields of a tree that mctx fills below finished games: those of the new nodes `[B, N, ...]`, and
# those of the finished games' own actions `[B, N, A]`.
_NODES = "node_visits raw_values node_values parents action_from_parent children_prior_logits"
_EDGES = "children_index children_visits children_rewards children_discounts children_values"


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
        logits, value = evaluate_states(game, evaluate, params, keys, states)
        return _root_output(logits, value, states)

    def recurrent_fn(params, key, actions, states):
        keys = batch_keys(key, check_batch(game, states))
        found = expand(game, evaluate, None, params, keys, actions, states)
        return _recurrent_output(found), found.states

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
    selection: Selection,
    expand: Callable[[jax.Array, jax.Array, State], Expansion],
    keys: jax.Array,
    tree: Tree,
    first: int | jax.Array,
    last: int | jax.Array,
) -> Tree:
    """Adds simulations `first` to `last - 1` to every tree `[B, ...]` by the loop of `mctx.search`.

    The trees are those that `simulate` grows. mctx walks on below finished games, where moves
    change nothing; these nodes are removed at the end.

    Args:
      selection: how to choose actions.
      expand: `(keys [B], actions [B], states [B, ...]) -> Expansion`.
      keys: `[B]`, to be folded with the number of each simulation for `expand`.
      tree: the trees, with `first` simulations in them.
      first: the number of the first simulation.
      last: the number after the last one, at most `N - 1`.
    """
    most = tree.node_visits.shape[1] - 1

    def recurrent_fn(params, key, actions, embedding):
        del params, key
        numbered = jax.vmap(jax.random.fold_in)(keys, embedding.simulation)
        found = expand(numbered, actions, embedding.states)
        return _recurrent_output(found), embedding._replace(states=found.states)

    def below(key, tree, node, depth):
        del key, depth
        spread = jnp.argmin(tree.children_visits[node]).astype(jnp.int32)  # So walks stay short.
        is_over = ~jnp.any(legal_actions(tree, node))
        return jnp.where(is_over, spread, selection.below(tree, node))

    def loop(_first, _last, simulate, carry):
        key, planted = carry

        def step(i, carry):
            key, tree = carry
            numbers = jnp.full_like(tree.embeddings.simulation, i)
            return simulate(i, (key, _number(tree, tree.embeddings.states, numbers)))

        start = _number(tree, tree.embeddings, planted.embeddings.simulation)
        key, grown = jax.lax.fori_loop(first, last, step, (key, start))
        return key, _prune(grown, planted)

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
        interior_action_selection_fn=below,
        num_simulations=most,
        invalid_actions=tree.root_invalid_actions,
        extra_data=tree.extra_data,
        loop_fn=loop,
    )
    return grown.replace(embeddings=grown.embeddings.states)


def _number(tree: Tree, states: State, simulation: jax.Array) -> Tree:
    return tree.replace(embeddings=_Embedding(states, simulation))


def _prune(tree: Tree, planted: Tree) -> Tree:
    """Removes the nodes below finished games; `planted` is the tree of the roots alone.

    A root may be finished, too: its actions lead to finished games, which stay.
    """
    exists = tree.parents != NO_PARENT
    is_over = exists & ~jnp.any(tree.children_prior_logits != NEVER, axis=-1)
    is_below = exists & jnp.take_along_axis(is_over, jnp.maximum(tree.parents, 0), axis=1)
    masks = dict.fromkeys([*_NODES.split(), "embeddings"], is_below)
    masks |= dict.fromkeys(_EDGES.split(), is_over)
    return tree.replace(
        **{
            name: where(mask, getattr(planted, name), getattr(tree, name))
            for name, mask in masks.items()
        }
    )


def _root_output(logits: jax.Array, value: jax.Array, embedding: Any) -> mctx.RootFnOutput:
    output: Any = mctx.RootFnOutput
    return output(prior_logits=logits, value=value, embedding=embedding)


def _recurrent_output(found: Expansion) -> mctx.RecurrentFnOutput:
    output: Any = mctx.RecurrentFnOutput
    return output(
        reward=found.reward,
        discount=found.discount,
        prior_logits=found.logits,
        value=found.value,
    )
