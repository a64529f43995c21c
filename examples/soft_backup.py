"""A search algorithm with its own loop: MENTS, maximum entropy tree search (Xiao et al. 2019).

A node's value is the soft maximum `t log sum_a exp(Q(a) / t)` of its actions instead of a mean
over simulations, and actions are drawn from the softmax of `Q / t`. `select` searches with the
phases of `azjax.search.simulate`, except for its own backup, and returns the result.
"""

import dataclasses

import jax
import jax.numpy as jnp

import azjax
from azjax.games import tic_tac_toe
from azjax.search import (
    ROOT,
    UNVISITED,
    Roots,
    SearchResult,
    Selection,
    Tree,
    legal_actions,
    make_result,
    simulate,
    split_each,
)


@dataclasses.dataclass(frozen=True)
class MENTS:
    """Maximum entropy tree search, for games without chance."""

    algorithm: str = dataclasses.field(default="ments", kw_only=True)
    num_simulations: int = 32
    temperature: float = 0.1
    exploration: float = 0.1

    is_deterministic = False  # It draws in every node, also without noise.

    def select(self, roots: Roots) -> SearchResult:
        """Searches, and draws the action from the soft policy, or takes the highest Q."""
        if roots.chance is not None:
            raise ValueError("MENTS has no values of chance: use it in games without dice")
        keys, keys_action = split_each(roots.keys)
        rule = Selection(roots.logits, self.draw, self.draw, finish=lambda tree: tree, extra=keys)
        tree = simulate.init(roots, rule, self.num_simulations)

        def one(i: jax.Array, tree: Tree) -> Tree:
            edge = simulate.descend(rule, tree)
            batch = jnp.arange(len(edge.node))
            states = jax.tree.map(lambda leaf: leaf[batch, edge.node], tree.embeddings)
            expansion = simulate.expand(roots, rule, i, edge.action, states)
            child = tree.children_index[batch, edge.node, edge.action]
            child = jnp.where(child == UNVISITED, i + 1, child)  # It may be a finished game.
            tree = simulate.add_leaf(tree, edge, child, expansion)
            return jax.vmap(self.backup)(tree, child)

        tree = jax.lax.fori_loop(0, self.num_simulations, one, tree)
        q = jax.vmap(self.soft_q, in_axes=(0, None))(tree, jnp.int32(ROOT))
        weights = jax.nn.softmax(q / self.temperature)
        sharpened = jnp.log(weights) / jnp.maximum(roots.temperature, 1e-3)[:, None]
        drawn = jax.vmap(jax.random.categorical)(keys_action, sharpened)
        action = jnp.where(roots.temperature > 0, drawn, jnp.argmax(q, axis=-1))
        return make_result(tree, action, weights)

    def soft_q(self, tree: Tree, node: jax.Array) -> jax.Array:
        """Returns Q `[A]` in a node of one tree; -inf where illegal.

        Before its first visit, an action has `v + t log p`, with the evaluator's value and prior:
        the soft value of a new node is then `v`, and its soft policy is the prior.
        """
        log_prior = jax.nn.log_softmax(tree.children_prior_logits[node])
        first = tree.raw_values[node] + self.temperature * log_prior
        q = jnp.where(tree.children_visits[node] > 0, tree.qvalues(node), first)
        return jnp.where(legal_actions(tree, node), q, -jnp.inf)

    def draw(self, tree: Tree, node: jax.Array) -> jax.Array:
        """Draws an action from the soft policy, mixed with uniform exploration (E2W)."""
        legal, visits = legal_actions(tree, node), tree.node_visits[node]
        count = jnp.sum(legal)
        share = jnp.minimum(1.0, self.exploration * count / jnp.log(visits + 1.0))
        soft = jax.nn.softmax(self.soft_q(tree, node) / self.temperature)
        probabilities = (1 - share) * soft + share / count
        key = jax.random.fold_in(jax.random.fold_in(tree.extra_data, node), visits)
        return jax.random.categorical(key, jnp.where(legal, jnp.log(probabilities), -jnp.inf))

    def backup(self, tree: Tree, leaf: jax.Array) -> Tree:
        """Renews the soft values of all nodes above a leaf of one tree."""

        def step(carry: tuple[Tree, jax.Array]) -> tuple[Tree, jax.Array]:
            tree, child = carry
            node, action = tree.parents[child], tree.action_from_parent[child]
            value = tree.node_values[child]
            tree = tree.replace(
                children_values=tree.children_values.at[node, action].set(value),
                children_visits=tree.children_visits.at[node, action].add(1),
            )
            scaled = self.soft_q(tree, node) / self.temperature
            soft = self.temperature * jax.nn.logsumexp(scaled)
            tree = tree.replace(
                node_values=tree.node_values.at[node].set(soft),
                node_visits=tree.node_visits.at[node].add(1),
            )
            return tree, node

        return jax.lax.while_loop(lambda carry: carry[1] != ROOT, step, (tree, leaf))[0]


if __name__ == "__main__":
    game = azjax.make("tic_tac_toe")
    fork = tic_tac_toe.from_board([1, 0, 0, 0, -1, 0, 0, 0, 1])  # O to move; a corner loses.
    states = jax.tree.map(lambda leaf: leaf[None], fork)
    for temperature in (1.0, 0.3, 0.1):
        algorithm = MENTS(num_simulations=400, temperature=temperature)
        evaluate = azjax.search.uniform_evaluator(game)
        search = jax.jit(azjax.make_search(algorithm, game, evaluate))
        result = search(None, jax.random.key(0), states)
        print(f"temperature {temperature}: soft value {result.value[0]:.3f}, policy", end=" ")
        print(result.action_weights[0].round(2).tolist())
    print("For self-play: Parts(search=MENTS(), ...)")
