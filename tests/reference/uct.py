"""Classic Monte Carlo tree search, as in a textbook: UCB1 and random games, one at a time."""

import math

from reference import sign


class Node:
    """A position in the tree; its total is for the player to move there."""

    def __init__(self, rules, position, outcome=None):
        self.position = position
        self.outcome = outcome  # Of a finished game, for the player to move.
        self.untried = [] if position.over else list(rules.legal(position))
        self.children = {}  # In the order in which they were tried.
        self.visits = 0
        self.total = 0.0


def search(rules, rng, position, num_simulations, exploration):
    """Returns `(action, {action: visits})`; ties go to the action tried first."""
    root = Node(rules, position)
    for _ in range(num_simulations):
        path = [root]
        while not path[-1].untried and path[-1].children:
            path.append(select(path[-1], exploration))
        if path[-1].untried:
            path.append(expand(rules, rng, path[-1]))
        back_up(path, roll_out(rules, rng, path[-1]))
    visits = {action: child.visits for action, child in root.children.items()}
    return max(visits, key=visits.get), visits


def select(node, exploration):
    """Returns the child of highest `V + C sqrt(ln(N + 1) / n)`; ties go to the first one tried."""

    def score(child):
        value = sign(node.position, child.position) * child.total / child.visits
        return value + exploration * math.sqrt(math.log(node.visits + 1) / child.visits)

    return max(node.children.values(), key=score)


def expand(rules, rng, node):
    """Expands an untried action, drawn uniformly."""
    action = node.untried.pop(rng.integers(len(node.untried)))
    after, reward = rules.play(node.position, action)
    outcome = sign(node.position, after) * reward
    node.children[action] = Node(rules, after, outcome)
    return node.children[action]


def roll_out(rules, rng, node):
    """Plays at random to the end; returns the outcome for the player to move at the node."""
    position, outcome = node.position, node.outcome
    while not position.over:
        action = rng.choice(list(rules.legal(position)))
        after, reward = rules.play(position, action)
        outcome = sign(node.position, position) * reward
        position = after
    return outcome


def back_up(path, outcome):
    """Adds an outcome, for the player at the end of the path, to every node of it."""
    for node in path:
        node.visits += 1
        node.total += sign(node.position, path[-1].position) * outcome
