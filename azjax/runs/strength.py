"""Strength during training: matches of the averaged network against frozen opponents."""

from typing import Any

import jax
import jax.numpy as jnp

from azjax.games.base import State
from azjax.players import Agent, search_agent
from azjax.players.arena import draw_openings, play_match
from azjax.players.statistics import Interval, elo_difference
from azjax.search import UCT, Algorithm
from azjax.search.evaluators import rollout_evaluator
from azjax.training.loop import Callback, Loop
from azjax.training.parts import Parts

_STREAM = 2**31  # Folded into the seed; above all iterations, so no key of training is reused.
_PLIES = 2  # Random moves of an opening.


class Strength(Callback):
    """Measures the averaged network in matches against two frozen opponents.

    One opponent is UCT with random rollouts. The other is the best older version of the network.
    At first this is the network that training starts from, also in a resumed run. A network that
    beats it takes its place: the interval of their Elo difference must be above 0. Games start from
    random openings, and each opening is played from both seats.

    The record gets the Elo differences `elo_uct` and `elo_best`; the ends of their 95% intervals,
    `elo_uct_low`, `elo_uct_high`, `elo_best_low` and `elo_best_high`; and `elo_best_iteration`, the
    iteration of the best older version. The matches have their own random keys and leave the
    training state unchanged, so training is bit for bit the same without them.
    """

    def __init__(
        self,
        parts: Parts,
        every: int = 10,
        num_games: int = 64,
        seed: int = 0,
        *,
        search: Algorithm | None = None,
        simulations: int = 100,
    ):
        """Builds the players. The matches compile when the first one is played.

        Args:
          parts: the components of training.
          every: iterations between two measurements.
          num_games: games against each opponent, half of them from each seat; fewer if the game
            has fewer openings and both players are deterministic.
          seed: seed of all randomness in the matches.
          search: the search of both versions of the network; by default that of the parts.
          simulations: simulations of UCT.
        """
        if every < 1 or num_games < 2:
            raise ValueError(f"every is {every} and num_games {num_games}: use 1 and 2 or more")
        game = parts.game
        self._game, self._every, self._num_games = game, every, num_games
        self._seed_key = jax.random.fold_in(jax.random.key(seed), _STREAM)
        self._fold = jax.jit(parts.network.fold)
        self._network = search_agent(game, search or parts.search, parts.evaluate, name="network")
        uct = UCT(num_simulations=simulations)
        self._uct = search_agent(game, uct, rollout_evaluator(game))

    def on_start(self, loop: Loop) -> None:
        self._replace_best(loop)

    def on_iteration(self, loop: Loop) -> None:
        if loop.iteration % self._every:
            return
        key = jax.random.fold_in(self._seed_key, loop.iteration)
        key_openings, key_uct, key_best = jax.random.split(key, 3)
        plies = min(_PLIES, self._game.max_plies - 1)
        openings = draw_openings(self._game, key_openings, self._num_games // 2, plies)
        current = self._with(loop.average)
        uct = self._measure(current, self._uct, key_uct, openings)
        best = self._measure(current, self._with(self._best), key_best, openings)
        loop.add(
            **_as_metrics("elo_uct", uct),
            **_as_metrics("elo_best", best),
            elo_best_iteration=self._best_iteration,
        )
        if best.low > 0:
            self._replace_best(loop)

    def _with(self, variables: Any) -> Agent:
        return self._network._replace(params=self._fold(variables))

    def _measure(self, current: Agent, other: Agent, key: jax.Array, openings: State) -> Interval:
        match = play_match(self._game, current, other, self._num_games, key, openings)
        one, two = match.moving_first, match.moving_second
        return elo_difference(one.wins + two.wins, one.draws + two.draws, one.losses + two.losses)

    def _replace_best(self, loop: Loop) -> None:
        # The next iteration overwrites the buffers of `loop.average`.
        self._best = jax.tree.map(jnp.copy, loop.average)
        self._best_iteration = loop.iteration


def _as_metrics(name: str, elo: Interval) -> dict[str, float]:
    return {name: elo.estimate, f"{name}_low": elo.low, f"{name}_high": elo.high}
