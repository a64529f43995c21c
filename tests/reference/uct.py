"""Classic Monte Carlo tree search as a textbook has it: UCB1 and random games, one at a time."""

import math

from reference import sign


class Node:
    """A position in the tree; its total is for the player to move there."""

    def __init__(self, rules, position, outcome=None):
        self.position = position
        self.outcome = outcome  # For the player to move, where the game is over.
        self.untried = [] if position.over else list(rules.legal(position))
        self.children = {}  # In the order in which they were tried.
        self.visits = 0
        self.total = 0.0


def search(rules, rng, position, num_simulations, exploration):
    """Returns `(action, {action: visits})`; of equally visited actions, the one tried first."""
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
    """The child of highest `V + C sqrt(ln(N + 1) / n)`, the one tried first if several have it."""

    def score(child):
        value = sign(node.position, child.position) * child.total / child.visits
        return value + exploration * math.sqrt(math.log(node.visits + 1) / child.visits)

    return max(node.children.values(), key=score)


def expand(rules, rng, node):
    """Tries one of the untried actions, all equally likely."""
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
