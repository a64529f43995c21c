"""A custom player of backgammon, in the arena against random moves.

It plays the move after which its pip count minus the opponent's is lowest; hits raise the latter.
Of equal ones, it chooses one that leaves fewest blots, points with a single checker.
"""

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax.players import Decision, random_agent


def pip_count(game: azjax.Game) -> azjax.Agent:
    """Makes a player that counts pips."""

    def cost(state, action):
        after, _ = game.step(state, action)
        own, other = state.player, 1 - state.player
        pips = jnp.sum(after.checkers * np.arange(26), axis=1)
        blots = jnp.sum(after.checkers[own, 1:25] == 1)
        return pips[own] - pips[other] + blots / 16  # At most 15 blots.

    def act(params, key, states):
        del params, key
        legal = jax.vmap(game.legal_actions)(states)
        every = jnp.arange(game.num_actions)
        costs = jax.vmap(lambda state: jax.vmap(lambda a: cost(state, a))(every))(states)
        action = jnp.argmin(jnp.where(legal, costs, np.inf), axis=1).astype(jnp.int32)
        return Decision(action, jax.nn.one_hot(action, game.num_actions))

    return azjax.Agent("pip count", act, deterministic=True)


if __name__ == "__main__":
    game = azjax.make("backgammon")
    players = pip_count(game), random_agent(game)
    match = azjax.play_match(game, *players, 200, jax.random.key(0))
    wins = match.moving_first.wins + match.moving_second.wins
    print(f"The pip count won {wins} of 200 games against random moves.")
