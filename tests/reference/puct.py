"""The tree search of AlphaZero, as in a textbook: nodes, dictionaries, one simulation at a time."""

import math
from typing import NamedTuple

from reference import sign


class Node:
    """A position in the tree; its values are for the player to move there."""

    def __init__(self, position, prior=1.0, outcome=None):
        self.position = position
        self.prior = prior
        self.outcome = outcome  # The result of a finished game.
        self.children = {}
        self.logits = {}  # Of the legal actions, in the search of Gumbel.
        self.visit_count = 0
        self.value_sum = 0.0

    @property
    def value(self):
        return self.value_sum / self.visit_count


class Result(NamedTuple):
    visit_counts: dict[int, int]
    value: float
    margin: float  # The least lead of the best choice over the second best.


def search(rules, evaluate, position, num_simulations, c_puct, first_play_urgency):
    """Searches from a position.

    `rules` is a module, where only a game's last move may be rewarded; `evaluate(position)` returns
    a logit for every action and a value. The first simulation, which expands the root, is extra.
    """
    root, margins = Node(position), [math.inf]
    for _ in range(num_simulations + 1):
        path = [root]
        while path[-1].children:
            child, margin = select(path[-1], c_puct, first_play_urgency)
            path.append(child)
            margins.append(margin)
        backup(path, expand(rules, evaluate, path[-1]))
    visits = {action: child.visit_count for action, child in root.children.items()}
    return Result(visits, root.value, min(margins))


def select(node, c_puct, first_play_urgency):
    """Returns the first child of highest score, and its lead."""
    urgency = {"zero": 0.0, "parent": node.value, "loss": -1.0}[first_play_urgency]

    def score(child):
        known = child.visit_count > 0
        q = sign(node.position, child.position) * child.value if known else urgency
        return q + c_puct * child.prior * math.sqrt(node.visit_count) / (1 + child.visit_count)

    scores = [score(child) for _, child in sorted(node.children.items())]
    best, *others = sorted(scores, reverse=True)
    chosen = sorted(node.children)[scores.index(best)]
    return node.children[chosen], best - max(others, default=-math.inf)


def expand(rules, evaluate, node):
    """Adds the children of a node; returns its value, for the player to move there."""
    if node.position.over:
        return node.outcome
    logits, value = evaluate(node.position)
    priors = softmax({action: logits[action] for action in rules.legal(node.position)})
    for action, prior in priors.items():
        after, reward = rules.play(node.position, action)
        node.children[action] = Node(after, prior, sign(node.position, after) * reward)
    return value


def softmax(scores):
    highest = max(scores.values())
    weights = {action: math.exp(score - highest) for action, score in scores.items()}
    return {action: weight / sum(weights.values()) for action, weight in weights.items()}


def backup(path, value):
    """Adds an outcome, for the player at the end of the path, to every node of it."""
    for node in path:
        node.visit_count += 1
        node.value_sum += sign(node.position, path[-1].position) * value


def child_of(rules, node, action):
    if action not in node.children:
        after, reward = rules.play(node.position, action)
        node.children[action] = Node(after, outcome=sign(node.position, after) * reward)
    return node.children[action]
