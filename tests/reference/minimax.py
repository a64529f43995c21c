"""The values of a game, by recursion over its rules, to the end or to a horizon."""

import functools
import math
from typing import NamedTuple

from reference import sign


def reachable(rules):
    """The positions of each ply."""
    plies = [{rules.start()}]
    while plies[-1]:
        plies.append({rules.play(p, a)[0] for p in plies[-1] for a in rules.legal(p)})
    return plies[:-1]


@functools.cache
def action_values(rules, position):
    """Returns `{action: outcome for the mover}` under perfect play after the action."""
    outcomes = {}
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        outcomes[action] = reward + sign(position, after) * value(rules, after)
    return outcomes


def value(rules, position):
    """Returns the outcome for the player to move; 0 if the game is over."""
    return max(action_values(rules, position).values(), default=0)


@functools.cache
def random_play_value(rules, position):
    """Returns the expected outcome for the player to move if all moves are uniformly random."""
    outcomes = []
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        outcomes.append(reward + sign(position, after) * random_play_value(rules, after))
    return sum(outcomes) / max(len(outcomes), 1)


def losing_lines(rules, position, seat, policy, in_vain=True):
    """Counts the games that a player of `{position: action}` loses, over all replies.

    Those do not count in which every position was lost already, so far `in_vain`.
    """
    lost = 0
    mine = position.player == seat
    in_vain = in_vain and value(rules, position) * (1 if mine else -1) < 0
    for action in [policy[position]] if mine else rules.legal(position):
        after, reward = rules.play(position, action)
        if after.over:
            lost += not in_vain and (reward if mine else -reward) < 0
        else:
            lost += losing_lines(rules, after, seat, policy, in_vain)
    return lost


# Minimax and alpha-beta to a horizon; values are for the player to move.


class Found(NamedTuple):
    value: float
    outcomes: dict[int, float]  # By action, for the player to move.


def search(rules, position, depth, prune, alpha=-math.inf, beta=math.inf):
    """Searches lines to a depth; positions at the horizon count as drawn.

    With `prune`, it stops at a position when its value exceeds what the opponent allows.
    """
    if position.over or depth == 0:
        return Found(0.0, {})
    outcomes = {}
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        again = sign(position, after)
        window = (alpha, beta) if again == 1 else (-beta, -alpha)
        below = search(rules, after, depth - 1, prune, *window)
        outcomes[action] = reward + again * below.value
        alpha = max(alpha, outcomes[action])
        if prune and alpha >= beta:
            break
    return Found(max(outcomes.values()), outcomes)
