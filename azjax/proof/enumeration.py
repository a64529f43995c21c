"""Proof by enumeration: the moves and values of a policy against exact ones, in every position.

A policy without losing lines loses a game only if it was lost at the start, and the opponent never
made a mistake: then perfect play would lose as well.
"""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import choose
from azjax.games.solver import Solution

LOSS, LARGE_LOSS = 0.001, 0.01  # Of the expected outcome, in games with chance.
_MOST_LINES = 10_000_000  # Counts stop here; lower if sums over actions would exceed 32 bits.


class Verdict(NamedTuple):
    """The result of `verify_outputs`. All counts are `int32 []`.

    In games with chance, every player can lose, and most values are neither won nor lost. There, a
    blunder loses more than 0.001 of the expected outcome, and the next two fields are None.
    """

    blunders: jax.Array  # Decision states where the chosen action worsens the outcome.
    losing_lines: Any  # `[2]`, moving first and second; see `count_losing_lines`.
    value_sign_errors: Any  # Won or lost states with the wrong sign; see `has_wrong_sign`.
    value_error: jax.Array  # Mean absolute error of the values.
    is_blunder: jax.Array  # `bool [D]`
    actions: jax.Array  # `int32 [D]`, the chosen actions.
    # `float32 [D]`, by how much each action lowers the expected outcome, in games with chance.
    losses: jax.Array | None = None

    def counts(self) -> dict[str, Any]:
        """Returns the results by their names in records and certificates."""
        if self.losses is not None:
            return {
                "blunders": int(self.blunders),
                "large_blunders": int((self.losses > LARGE_LOSS).sum()),
                "largest_loss": float(self.losses.max()),
                "mean_loss": float(self.losses.mean()),
            }
        first, second = map(int, self.losing_lines)
        return {
            "blunders": int(self.blunders),
            "losing_lines_first": first,
            "losing_lines_second": second,
            "value_sign_errors": int(self.value_sign_errors),
        }


def verify_outputs(solution: Solution, scores: Any, values: Any) -> Verdict:
    """Verifies the outputs of a policy in all decision states, `scores [D, A]` and `values [D]`.

    The policy plays what `choose` returns. The function is compiled and can be traced; a compiled
    program that closes over the solution holds a copy of it.
    """
    layers, has_chance = tuple(map(int, solution.layers)), solution.has_chance
    used = solution._replace(layers=None, states=None, over=None)  # These stay on the host.
    if not has_chance:
        used = used._replace(action_values=None)
    return _verify_outputs(layers, has_chance, used, scores, values)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _verify_outputs(
    layers: tuple[int, ...],
    has_chance: bool,
    solution: Solution,
    scores: jax.Array,
    values: jax.Array,
) -> Verdict:
    truth = solution.values[solution.decisions]
    actions = choose(scores, solution.legal[solution.decisions])
    chosen = solution.decisions, actions
    losses = losing_lines = sign_errors = None
    if has_chance:
        losses = truth - solution.action_values[chosen]
        is_blunder = losses > LOSS
    else:
        is_blunder = ~solution.optimal[chosen]
        losing_lines = count_losing_lines(solution._replace(layers=layers), actions)
        sign_errors = jnp.sum(has_wrong_sign(values, truth), dtype=jnp.int32)
    return Verdict(
        blunders=jnp.sum(is_blunder, dtype=jnp.int32),
        losing_lines=losing_lines,
        value_sign_errors=sign_errors,
        value_error=jnp.mean(jnp.abs(values - truth)),
        is_blunder=is_blunder,
        actions=actions,
        losses=losses,
    )


def has_wrong_sign(values: jax.Array, truth: jax.Array | np.ndarray) -> jax.Array:
    """Whether values of won or lost positions are 0 or NaN, or have the wrong sign."""
    return (truth != 0) & ~(values * truth > 0)


def count_losing_lines(solution: Solution, actions: jax.Array) -> jax.Array:
    """Counts the games that a deterministic player loses, over every reply of the opponent.

    A game counts only if at least one of its positions is not lost with perfect play: in some
    games, one player loses from the start, unless the opponent makes a mistake.

    Returns the counts `int32 [2]` for a first and a second player that chooses `actions [D]`,
    capped at ten million; the cap is lower in games with more than 214 actions.
    """
    most = min(_MOST_LINES, np.iinfo(np.int32).max // solution.legal.shape[1])
    chosen = jnp.zeros(solution.legal.shape, jnp.int32).at[solution.decisions, actions].set(1)
    legal = jnp.asarray(solution.legal, jnp.int32)[..., None]
    is_mover = solution.player[:, None] == np.arange(2, dtype=np.int8)  # [S, 2], for each seat.
    played = jnp.where(is_mover[:, None], chosen[..., None], legal)  # [S, A, 2]
    sign = jnp.where(is_mover, 1.0, -1.0)
    loses = (solution.rewards[..., None] * sign[:, None] < 0).astype(jnp.int32)
    is_lost = sign * solution.values[:, None] < 0  # Even with perfect play.
    # Lost lines from each position, and those of them in which some position is not lost yet.
    lost = needless = jnp.zeros((solution.num_states, 2), jnp.int32)
    for start, end in reversed([*itertools.pairwise(map(int, solution.layers))]):
        rows = slice(start, end)
        children = solution.children[rows]
        total = played[rows] * (loses[rows] + lost[children] * legal[rows])
        lost = lost.at[rows].set(jnp.minimum(jnp.sum(total, axis=1, dtype=jnp.int32), most))
        later = played[rows] * needless[children] * legal[rows]
        later = jnp.minimum(jnp.sum(later, axis=1, dtype=jnp.int32), most)
        needless = needless.at[rows].set(jnp.where(is_lost[rows], later, lost[rows]))
    return needless[0]
