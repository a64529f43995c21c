"""A custom search: PUCT with forced playouts and policy target pruning (Wu 2019, section 3.2).

With noise, every root action that was visited gets at least `sqrt(k P N)` visits. Those that its
value does not deserve are left out of the policy target.
"""

import dataclasses

import jax
import jax.numpy as jnp

import azjax
from azjax.games import tic_tac_toe
from azjax.search import PUCT, ROOT, Roots, Selection, Tree, make_search


@dataclasses.dataclass(frozen=True)
class ForcedPlayouts:
    """PUCT with forced playouts; without noise, it is PUCT."""

    algorithm: str = dataclasses.field(default="forced-playouts", kw_only=True)
    num_simulations: int = 32
    c_puct: float = 1.25
    k: float = 2.0  # KataGo: 2.

    is_deterministic = True

    def select(self, roots: Roots) -> Selection:
        """Selects as PUCT, except at roots with noise."""
        puct = PUCT(self.num_simulations, self.c_puct).select(roots)
        k = jnp.where(roots.add_noise, self.k, jnp.zeros_like(roots.temperature))

        def at_root(tree: Tree, node: jax.Array) -> jax.Array:
            visits = tree.children_visits[node]
            forced = (visits > 0) & (visits < self.count_forced(tree))
            return jnp.where(jnp.any(forced), jnp.argmax(forced), puct.at_root(tree, node))

        def finish(tree: Tree):
            return puct.finish(tree)._replace(action_weights=jax.vmap(self.prune)(tree))

        return puct._replace(at_root=at_root, finish=finish, extra=k)

    def count_forced(self, tree: Tree) -> jax.Array:
        """Returns `float32 [A]`, the visits that each root action gets; `extra_data` is `k`."""
        total = jnp.sum(tree.children_visits[ROOT]).astype(jnp.float32)
        return jnp.sqrt(tree.extra_data * jax.nn.softmax(tree.children_prior_logits[ROOT]) * total)

    def prune(self, tree: Tree) -> jax.Array:
        """Takes forced visits, as long as the score stays below that of the most visited action."""
        visits = tree.children_visits[ROOT].astype(jnp.float32)
        best, q = jnp.argmax(visits), jnp.where(visits > 0, tree.qvalues(ROOT), 0.0)
        weight = self.c_puct * jax.nn.softmax(tree.children_prior_logits[ROOT])
        weight *= jnp.sqrt(1 + jnp.sum(visits))
        lead = q[best] + weight[best] / (1 + visits[best]) - q
        deserved = jnp.ceil(weight / jnp.maximum(lead, 1e-9)) - 1
        least = visits - jnp.floor(self.count_forced(tree))
        kept = jnp.clip(jnp.maximum(deserved, least), 0, visits)
        kept = jnp.where((kept <= 1) & (kept < visits), 0.0, kept).at[best].set(visits[best])
        return kept / jnp.sum(kept)


if __name__ == "__main__":
    player = azjax.load("tic_tac_toe")
    search = jax.jit(make_search(ForcedPlayouts(200), player.game, player.parts.evaluate))
    fork = tic_tac_toe.from_board([1, 0, 0, 0, -1, 0, 0, 0, 1])  # O to move; a corner loses.
    states = jax.tree.map(lambda leaf: leaf[None], fork)
    result = search(player.params, jax.random.key(0), states, add_noise=True)
    print("visits in self-play:", result.visit_counts[0].tolist())
    print("policy target x 200:", (200 * result.action_weights[0]).round().tolist())
