"""Gumbel AlphaZero as in the paper (Danihelka et al. 2022): nodes, dictionaries, loops."""

import math
from typing import NamedTuple

from reference import sign
from reference.puct import Node, backup, child_of, softmax


class Settings(NamedTuple):
    num_simulations: int = 32
    max_considered_actions: int = 16
    value_scale: float = 0.1
    maxvisit_init: float = 50.0


class Result(NamedTuple):
    action: int
    policy: dict[int, float]
    visit_counts: dict[int, int]
    value: float
    margin: float  # The least lead of the best choice over the second best.


def search(rules, evaluate, position, noise, settings):
    """Searches from a position, with `noise` of the root's actions, one number each."""
    root, margins = Node(position), []
    backup([root], expand(rules, evaluate, root))

    def root_score(action):
        return noise[action] + root.logits[action] + sigma(settings, root)[action]

    for wanted in halving(settings, len(root.logits)):
        candidates = [a for a in root.logits if visits_of(root, a) == wanted]
        action = choose(candidates, root_score, margins)
        path = [root, child_of(rules, root, action)]
        while path[-1].logits:
            action = choose_below(settings, path[-1], margins)
            path.append(child_of(rules, path[-1], action))
        backup(path, expand(rules, evaluate, path[-1]))
    most = max(visits_of(root, action) for action in root.logits)
    finalists = [action for action in root.logits if visits_of(root, action) == most]
    action = choose(finalists, root_score, margins)
    visits = {action: visits_of(root, action) for action in root.logits}
    return Result(action, improved(settings, root), visits, root.value, min(margins))


def halving(settings, num_legal):
    """Returns the number of visits of the action to visit, for each simulation (Algorithm 2)."""
    left = considered = min(settings.max_considered_actions, num_legal)
    phases = max(1, math.ceil(math.log2(considered)))
    wanted, visits = [], 0
    while len(wanted) < settings.num_simulations:
        for _ in range(max(1, settings.num_simulations // (phases * left))):
            wanted += [visits] * left
            visits += 1
        left = max(min(2, considered), left // 2)
    return wanted[: settings.num_simulations]


def choose(actions, score, margins):
    """Returns the first action of highest score, and records its lead."""
    scores = [score(action) for action in actions]
    best, *others = sorted(scores, reverse=True)
    margins.append(best - max(others, default=-math.inf))
    return actions[scores.index(best)]


def choose_below(settings, node, margins):
    """Keeps the visits close to the improved policy (Equation 14)."""
    policy, total = improved(settings, node), sum(visits_of(node, a) for a in node.logits)
    return choose(list(policy), lambda a: policy[a] - visits_of(node, a) / (1 + total), margins)


def improved(settings, node):
    """The policy `softmax(logits + sigma(completed Q))` (Equation 11)."""
    scores = {a: node.logits[a] + raised for a, raised in sigma(settings, node).items()}
    return softmax(scores)


def sigma(settings, node):
    """`(c_visit + max N) c_scale Q` (Equation 8), with Q in [0, 1], of visited actions or not."""
    scale = (
        settings.maxvisit_init + max(visits_of(node, a) for a in node.logits)
    ) * settings.value_scale
    return {action: scale * (q + 1) / 2 for action, q in completed(node).items()}


def completed(node):
    """Returns the Q of each action, or the mixed value for unvisited actions (appendix D)."""
    prior = softmax(node.logits)
    visited = [action for action in node.logits if visits_of(node, action)]
    mixed = node.raw_value
    if visited:
        total, share = sum(visits_of(node, a) for a in visited), sum(prior[a] for a in visited)
        mean = sum(prior[a] * q_of(node, a) for a in visited) / share
        mixed = (node.raw_value + total * mean) / (1 + total)
    return {action: q_of(node, action) if action in visited else mixed for action in node.logits}


def expand(rules, evaluate, node):
    """Sets the logits of a node; returns its value, for the player to move there."""
    if node.position.over:
        return node.outcome
    logits, node.raw_value = evaluate(node.position)
    node.logits = {action: logits[action] for action in rules.legal(node.position)}
    return node.raw_value


def visits_of(node, action):
    return node.children[action].visit_count if action in node.children else 0


def q_of(node, action):
    child = node.children[action]
    return sign(node.position, child.position) * child.value
