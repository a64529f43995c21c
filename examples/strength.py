"""A callback: a match against UCT every few iterations, for games that nothing else can measure.

What it adds to the record is shown, written to `metrics.jsonl` and seen by later callbacks.
"""

import jax

import azjax as az
from azjax.players import search_agent
from azjax.search.evaluators import rollout_evaluator


class Strength(az.Callback):
    """Adds the share of points won against UCT, and stops the training when it is high enough."""

    def __init__(self, parts: az.Parts, simulations: int = 50, every: int = 2, enough: float = 0.9):
        """Measures `every` few iterations against UCT with a number of simulations."""
        self.game, self.every, self.enough = parts.game, every, enough
        self.player = search_agent(parts.game, parts.search, parts.evaluate, None, name="player")
        uct = az.UCT(num_simulations=simulations)
        self.anchor = search_agent(parts.game, uct, rollout_evaluator(parts.game), name="uct")
        self.fold = parts.network.fold

    def on_iteration(self, loop):
        """Plays 100 games, each seat half of them."""
        if loop.iteration % self.every:
            return
        params = self.fold(loop.average)
        player, key = self.player._replace(params=params), jax.random.key(loop.iteration)
        match = az.play_match(self.game, player, self.anchor, 100, key)
        seats = match.moving_first, match.moving_second
        points = sum(seat.wins + 0.5 * seat.draws for seat in seats) / 100
        loop.add(points=points)
        loop.stop = points >= self.enough


if __name__ == "__main__":
    settings = az.presets.smoke(az.presets.get("connect_four"))
    callback = Strength(az.make_parts(settings))
    run = az.train(settings, callbacks=[callback], max_iterations=4, report=False, display=False)
    print([record["points"] for record in run.metrics if "points" in record])
