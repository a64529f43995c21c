"""How trees grow in `mctx.search`, for `make_search(..., grow=...)`.

Its results are those of `simulate.grow`. mctx also expands finished games. Moves there change
nothing and have the value 0, so only the trees have more nodes.
"""

import jax
import jax.numpy as jnp
import mctx

from azjax.search.algorithm import mask_logits
from azjax.search.simulate import expand


def grow(roots, selection, num_simulations):
    """Returns the trees after all simulations.

    An embedding is a state and the number of the current simulation, which mctx does not pass to
    `recurrent_fn`.
    """

    def recurrent_fn(params, key, actions, embedding):
        del params, key
        states, number = embedding
        states, reward, discount, logits, value = expand(roots, selection, number, actions, states)
        output = mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=logits, value=value
        )
        return output, (states, number)

    def loop(first, last, simulate, carry):
        def step(i, carry):
            key, tree = carry
            states, numbers = tree.embeddings
            tree = tree.replace(embeddings=(states, jnp.full_like(numbers, i)))
            return simulate(i, (key, tree))

        return jax.lax.fori_loop(first, last, step, carry)

    tree = mctx.search(
        None,
        roots.keys_expand[0],  # Unused: selection draws no random numbers.
        root=mctx.RootFnOutput(
            prior_logits=mask_logits(roots.legal, selection.logits),
            value=roots.value,
            embedding=(roots.states, jnp.zeros(roots.value.shape, jnp.int32)),
        ),
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=lambda key, tree, node: selection.at_root(tree, node),
        interior_action_selection_fn=lambda key, tree, node, depth: selection.below(tree, node),
        num_simulations=num_simulations,
        invalid_actions=~roots.legal,
        extra_data=selection.extra,
        loop_fn=loop,
    )
    return tree.replace(embeddings=tree.embeddings[0])
