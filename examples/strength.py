"""A callback: matches against UCT and against the best older network, while training.

The metrics `against_uct` and `against_best` are mean scores: 1 for a win, 1/2 for a draw. Matches
have their own random keys, so training is bit for bit the same without them.
"""

import dataclasses

import jax
import jax.numpy as jnp

import azjax
from azjax.players import Agent, search_agent
from azjax.search import rollout_evaluator
from azjax.training import Parts, SelfPlayConfig, start_games

OPENINGS = SelfPlayConfig(opening_plies=2, opening_share=1.0)


class Strength(azjax.Callback):
    """Plays matches every few iterations, half of the games of each from either seat."""

    def __init__(self, parts: Parts, every: int, num_games: int = 64, simulations: int = 100):
        """Takes the parts of the training, and the simulations of UCT."""
        self.every, self.num_games, self.game = every, num_games, parts.game
        self.fold = jax.jit(parts.network.fold)
        self.network = search_agent(parts.game, parts.search, parts.evaluate)
        uct = azjax.UCT(num_simulations=simulations)
        self.uct = search_agent(parts.game, uct, rollout_evaluator(parts.game))

    def on_start(self, loop):
        """Takes the first network for the best one."""
        self.best = self.current(loop)

    def on_iteration(self, loop):
        """Plays the matches if they are due; a network that wins clearly becomes the best one."""
        if loop.iteration % self.every:
            return
        key = jax.random.fold_in(jax.random.key(12345), loop.iteration)
        key_openings, key_uct, key_best = jax.random.split(key, 3)
        keys, current = jax.random.split(key_openings, self.num_games // 2), self.current(loop)
        openings = start_games(OPENINGS, self.game, keys).states

        def score(opponent: Agent, key: jax.Array) -> float:
            match = azjax.play_match(self.game, current, opponent, self.num_games, key, openings)
            seats = match.moving_first, match.moving_second
            points = sum(seat.wins + seat.draws / 2 for seat in seats)
            return points / sum(seat.wins + seat.draws + seat.losses for seat in seats)

        loop.add(against_uct=score(self.uct, key_uct), against_best=score(self.best, key_best))
        if loop.record.extra["against_best"] > 0.55:
            self.best = current

    def current(self, loop) -> Agent:
        """Copies the averaged network, which the next iteration overwrites."""
        copied = jax.tree.map(jnp.copy, loop.average)
        return self.network._replace(params=self.fold(copied))


if __name__ == "__main__":
    config = dataclasses.replace(azjax.presets.get("default"), game="hex:4")
    strength = Strength(azjax.make_parts(config), every=5)
    run = azjax.train(
        azjax.make_parts(config), until="never", max_iterations=20, callbacks=[strength]
    )
    for record in run.metrics:
        print(f"iteration {record['iteration']}: {record.get('against_uct', '')}")
