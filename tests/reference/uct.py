"""Classic Monte Carlo tree search, as in a textbook: UCB1 and random games, one at a time."""

import math

from reference import sign
from reference.puct import Node, backup, child_of


def search(rules, rng, position, num_simulations, exploration):
    """Returns `(action, {action: visits})`; ties go to the action tried first."""
    root = Node(position)
    for _ in range(num_simulations):
        path = [root]
        while not untried(rules, path[-1]) and path[-1].children:
            path.append(select(path[-1], exploration))
        if actions := untried(rules, path[-1]):
            path.append(child_of(rules, path[-1], rng.choice(actions)))
        backup(path, roll_out(rules, rng, path[-1]))
    visits = {action: child.visit_count for action, child in root.children.items()}
    return max(visits, key=visits.get), visits


def untried(rules, node):
    return [action for action in rules.legal(node.position) if action not in node.children]


def select(node, exploration):
    """Returns the child of highest `V + C sqrt(ln(N + 1) / n)`; ties go to the first one tried."""

    def score(child):
        bound = math.sqrt(math.log(node.visit_count + 1) / child.visit_count)
        return sign(node.position, child.position) * child.value + exploration * bound

    return max(node.children.values(), key=score)


def roll_out(rules, rng, node):
    """Plays at random to the end; returns the outcome for the player to move at the node."""
    position, outcome = node.position, node.outcome
    while not position.over:
        after, reward = rules.play(position, rng.choice(rules.legal(position)))
        outcome = sign(node.position, position) * reward
        position = after
    return outcome
