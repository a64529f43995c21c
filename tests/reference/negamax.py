"""Minimax and alpha-beta to a horizon, by recursion; values are for the player to move."""

import math
from typing import NamedTuple

from reference import sign


class Found(NamedTuple):
    value: float
    outcomes: dict[int, float]  # By action, for the player to move.
    positions: int  # Visited, including the root.


def search(rules, evaluate, position, depth, prune, alpha=-math.inf, beta=math.inf):
    """Searches lines to a depth; `evaluate(position)` is the value at the horizon.

    With `prune`, it stops at a position when its value exceeds what the opponent allows.
    """
    if position.over or depth == 0:
        return Found(0.0 if position.over else evaluate(position), {}, 1)
    outcomes, positions = {}, 1
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        again = sign(position, after)
        window = (alpha, beta) if again == 1 else (-beta, -alpha)
        below = search(rules, evaluate, after, depth - 1, prune, *window)
        outcomes[action] = reward + again * below.value
        positions += below.positions
        alpha = max(alpha, outcomes[action])
        if prune and alpha >= beta:
            break
    return Found(max(outcomes.values()), outcomes, positions)
