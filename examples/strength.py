"""A custom callback that stops training once the network is strong enough.

`azjax.callbacks.Strength` plays the matches against UCT. It comes first in the list of callbacks,
so its results are in the record when the custom callback reads it.
"""

import azjax as az


class StrongEnough(az.Callback):
    """Stops once a match shows the network `elo` points above UCT, with 97.5% confidence per match.

    The confidence does not account for repeated matches.
    """

    def __init__(self, elo: float):
        """Stops when the lower end of the 95% interval is above `elo`."""
        self.elo = elo

    def on_iteration(self, loop):
        """After matches, records the missing Elo, and stops if none is missing."""
        if "elo_uct_low" in loop.record.extra:
            missing = self.elo - loop.record.extra["elo_uct_low"]
            loop.add(elo_missing=max(missing, 0.0))
            if missing < 0:
                loop.stop = True


if __name__ == "__main__":
    settings = az.presets.smoke(az.presets.get("connect_four"))
    matches = az.callbacks.Strength(az.make_parts(settings), every=2, num_games=20, simulations=50)
    callbacks = [matches, StrongEnough(elo=100)]
    run = az.train(settings, callbacks=callbacks, max_iterations=4, report=False, display=False)
    print([record["elo_missing"] for record in run.metrics if "elo_missing" in record])
