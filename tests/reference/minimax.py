"""The values of a game, by recursion over its rules, to the end or to a horizon."""

import functools
import math

from reference import sign


def reachable(rules):
    """The positions of each ply."""
    plies = [{rules.start()}]
    while plies[-1]:
        plies.append({rules.play(p, a)[0] for p in plies[-1] for a in rules.legal(p)})
    return plies[:-1]


@functools.cache
def action_values(rules, position, depth=math.inf):
    """Returns `{action: outcome for the mover}` under perfect play; draws at a horizon."""
    outcomes = {}
    for action in rules.legal(position) if depth else ():
        after, reward = rules.play(position, action)
        outcomes[action] = reward + sign(position, after) * value(rules, after, depth - 1)
    return outcomes


def value(rules, position, depth=math.inf):
    """Returns the outcome for the player to move; the expected one before a throw of dice."""
    outcomes = action_values(rules, position, depth)
    if chance := rules.chance(position):
        return sum(chance[action] * outcomes[action] for action in outcomes)
    return max(outcomes.values(), default=0)


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
