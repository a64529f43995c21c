"""A custom search rule: PUCT with an exploration weight that grows with the visits.

In AlphaZero (Silver et al. 2018, Methods, "Search"), the weight is
`c(N) = log((1 + N + c_base) / c_base) + c_init`, almost constant in short searches. An algorithm is
any object with the members of `azjax.search.Algorithm`.

A search draws nothing by itself. For self-play, a rule draws the noise in the roots' priors, where
`roots.add_noise`, and the action, by `roots.temperature`. Without both, all games are the same.
"""

import dataclasses

import jax
import jax.numpy as jnp

import azjax
from azjax.games import init_batch
from azjax.search import (
    ROOT,
    Roots,
    Selection,
    Tree,
    draw_by_visits,
    legal_actions,
    make_result,
    make_search,
    split_each,
    uniform_evaluator,
    visit_shares,
    with_dirichlet,
)


@dataclasses.dataclass(frozen=True)
class GrowingPUCT:
    """PUCT with AlphaZero's growing exploration."""

    algorithm: str = "growing-puct"
    num_simulations: int = 32
    c_base: float = 19_652.0
    c_init: float = 1.25

    @property
    def is_deterministic(self) -> bool:
        """True: without noise and at temperature 0, ties go to the lowest action."""
        return True

    def select(self, roots: Roots) -> Selection:
        """Uses the same rule at every node; draws the roots' noise and the action."""
        key_noise, key_action = split_each(roots.keys)
        logits = with_dirichlet(roots, key_noise, alpha=0.3, fraction=0.25)

        def act(tree: Tree, node: jax.Array) -> jax.Array:
            total = tree.node_visits[node].astype(jnp.float32)
            visits, logits = tree.children_visits[node], tree.children_prior_logits[node]
            c = jnp.log((1 + total + self.c_base) / self.c_base) + self.c_init
            q = jnp.where(visits > 0, tree.qvalues(node), 0.0)
            score = q + c * jax.nn.softmax(logits) * jnp.sqrt(total) / (1 + visits)
            legal = legal_actions(tree, node)
            return jnp.argmax(jnp.where(legal, score, -jnp.inf)).astype(jnp.int32)

        def finish(tree: Tree):
            visits = tree.children_visits[:, ROOT]
            action = jax.vmap(draw_by_visits)(key_action, visits, roots.temperature)
            return make_result(tree, action, visit_shares(tree))

        return Selection(logits, at_root=act, below=act, finish=finish)


if __name__ == "__main__":
    game = azjax.make("tic_tac_toe")
    search = jax.jit(make_search(GrowingPUCT(num_simulations=200), game, uniform_evaluator(game)))
    key, states = jax.random.key(0), init_batch(game, 64)
    print("visits of the first move:", search(None, key, states).visit_counts[0].tolist())
    action = search(None, key, states, temperature=1.0, add_noise=True).action
    print("first moves in self-play:", jnp.bincount(action, length=9).tolist())
    print("For self-play: Parts(search=GrowingPUCT(), ...)")
