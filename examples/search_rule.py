"""A custom search rule: PUCT with an exploration weight that grows with the visits.

AlphaZero's pseudocode (Silver et al. 2018, supplement) uses the weight
`c(N) = log((1 + N + c_base) / c_base) + c_init`; the paper's text has a constant. An algorithm is
any object with the members of `azjax.search.Algorithm`.
"""

import dataclasses

import jax
import jax.numpy as jnp

import azjax
from azjax.games.base import init_batch
from azjax.search import (
    ROOT,
    Roots,
    Selection,
    Tree,
    legal_actions,
    make_result,
    make_search,
    visit_shares,
)
from azjax.search.evaluators import uniform_evaluator


@dataclasses.dataclass(frozen=True)
class GrowingPUCT:
    """PUCT with AlphaZero's growing exploration, without noise."""

    algorithm: str = "growing-puct"
    num_simulations: int = 32
    c_base: float = 19_652.0
    c_init: float = 1.25

    @property
    def is_deterministic(self) -> bool:
        """True: ties go to the lowest action."""
        return True

    def select(self, roots: Roots) -> Selection:
        """Uses the same rule at every node and plays the most visited action."""

        def act(tree: Tree, node: jax.Array) -> jax.Array:
            total = tree.node_visits[node].astype(jnp.float32)
            visits, logits = tree.children_visits[node], tree.children_prior_logits[node]
            c = jnp.log((1 + total + self.c_base) / self.c_base) + self.c_init
            q = jnp.where(visits > 0, tree.qvalues(node), 0.0)
            score = q + c * jax.nn.softmax(logits) * jnp.sqrt(total) / (1 + visits)
            legal = legal_actions(tree, node)
            return jnp.argmax(jnp.where(legal, score, -jnp.inf)).astype(jnp.int32)

        def finish(tree: Tree):
            action = jnp.argmax(tree.children_visits[:, ROOT], axis=-1)
            return make_result(tree, action, visit_shares(tree))

        return Selection(roots.logits, at_root=act, below=act, finish=finish)


if __name__ == "__main__":
    game = azjax.make("tic_tac_toe")
    search = jax.jit(make_search(GrowingPUCT(num_simulations=200), game, uniform_evaluator(game)))
    result = search(None, jax.random.key(0), init_batch(game, 1))
    print("visits of the first move:", result.visit_counts[0].tolist())
    print("For self-play: Parts(search=GrowingPUCT(), ...)")
