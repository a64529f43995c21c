"""Monte Carlo tree search that keeps the statistics of all positions, in dictionaries."""

import math


class Memory:
    def __init__(self):
        self.visits = {}  # {position: simulations that came through it}
        self.totals = {}  # {position: the sum of their outcomes, for player 0}
        self.children = {}  # {position: {action: position}}, in the order tried


def learn(rules, memory, position, num_simulations, exploration, rng, expansion):
    """Adds simulations; returns `{action: visits of the position after it}`."""
    for _ in range(num_simulations):
        simulate(rules, memory, position, exploration, rng, expansion)
    children = memory.children[position]
    return {action: memory.visits[after] for action, after in children.items()}


def simulate(rules, memory, position, exploration, rng, expansion):
    path, outcome = [position], 0
    while not (actions := untried(rules, memory, path[-1])) and not path[-1].over:
        action = select(memory, path[-1], exploration)
        after, gain = move(rules, path[-1], action)
        path.append(after)
        outcome += gain
    if actions:
        action = actions[-1] if expansion == "last" else rng.choice(actions)
        after, gain = move(rules, path[-1], action)
        memory.children.setdefault(path[-1], {})[action] = after
        path.append(after)
        outcome += gain + rollout(rules, after, rng)
    for passed in path:
        memory.visits[passed] = memory.visits.get(passed, 0) + 1
        memory.totals[passed] = memory.totals.get(passed, 0) + outcome


def untried(rules, memory, position):
    tried = memory.children.get(position, {})
    return [action for action in rules.legal(position) if action not in tried]


def select(memory, position, exploration):
    """UCB1 over the positions after each action; ties go to the action tried first."""

    def score(action):
        after = memory.children[position][action]
        mean = memory.totals[after] / memory.visits[after]
        bound = math.sqrt(math.log(memory.visits[position] + 1) / memory.visits[after])
        return (mean if position.player == 0 else -mean) + exploration * bound

    return max(memory.children[position], key=score)


def move(rules, position, action):
    """Returns the position after an action, and its reward for player 0."""
    after, reward = rules.play(position, action)
    return after, reward if position.player == 0 else -reward


def rollout(rules, position, rng):
    """The outcome of a random game, for player 0."""
    outcome = 0
    while not position.over:
        position, gain = move(rules, position, rng.choice(rules.legal(position)))
        outcome += gain
    return outcome
