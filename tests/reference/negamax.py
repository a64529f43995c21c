"""Depth-first search to a horizon, by recursion; values are for the player to move."""

import math
from typing import NamedTuple

from reference import sign


class Found(NamedTuple):
    value: float
    outcomes: dict[int, float]  # By action, for the player to move.
    positions: int  # Visited, including the root.


def minimax(rules, evaluate, position, depth):
    """Searches every line to a depth; `evaluate(position)` is the value at the horizon."""
    if position.over or depth == 0:
        return Found(0.0 if position.over else evaluate(position), {}, 1)
    outcomes, positions = {}, 1
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        below = minimax(rules, evaluate, after, depth - 1)
        outcomes[action] = reward + sign(position, after) * below.value
        positions += below.positions
    return Found(max(outcomes.values()), outcomes, positions)


def alpha_beta(rules, evaluate, position, depth, alpha=-math.inf, beta=math.inf):
    """Stops at a position when its value exceeds what the opponent allows."""
    if position.over or depth == 0:
        return Found(0.0 if position.over else evaluate(position), {}, 1)
    outcomes, positions = {}, 1
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        again = sign(position, after) == 1
        window = (alpha, beta) if again else (-beta, -alpha)
        below = alpha_beta(rules, evaluate, after, depth - 1, *window)
        outcomes[action] = reward + sign(position, after) * below.value
        positions += below.positions
        alpha = max(alpha, outcomes[action])
        if alpha >= beta:
            break
    return Found(max(outcomes.values()), outcomes, positions)
