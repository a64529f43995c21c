"""A custom evaluator and a custom player, in the arena.

The evaluator is a heuristic for tic-tac-toe: it counts the lines that only one player can still
complete. With any search, it makes a player. The other player does not search: it wins if it can,
and plays a random move if it cannot.
"""

import jax
import jax.numpy as jnp

import azjax
from azjax import players
from azjax.games import Game, check_batch, tic_tac_toe
from azjax.players import arena
from azjax.search import PUCT, Evaluator


def open_lines(game: Game) -> Evaluator:
    """Makes an evaluator with the mover's share of open lines minus the opponent's as the value."""

    def evaluate(params, key, states):
        del params, key
        mover = jnp.where(states.player == 0, 1, -1)[:, None, None]
        lines = states.board[:, tic_tac_toe.LINES] * mover
        mine, theirs = jnp.any(lines == 1, axis=-1), jnp.any(lines == -1, axis=-1)
        value = jnp.mean((mine & ~theirs) * 1.0 - (theirs & ~mine) * 1.0, axis=-1)
        return jnp.zeros((check_batch(game, states), game.num_actions)), value

    return Evaluator(evaluate, is_deterministic=True)


def takes_wins(game: Game) -> players.Agent:
    """Makes a player that wins if it can, and plays a random legal move if it cannot."""

    def act(params, key, states):
        del params
        legal = jax.vmap(game.legal_actions)(states)
        every = jnp.arange(game.num_actions)
        rewards = jax.vmap(lambda s: jax.vmap(lambda a: game.step(s, a)[1])(every))(states)
        chosen = jnp.where(jnp.any(rewards > 0, axis=-1, keepdims=True), rewards > 0, legal)
        weights = chosen / jnp.sum(chosen, axis=-1, keepdims=True)
        action = jax.random.categorical(key, jnp.where(chosen, 0.0, -jnp.inf))
        return players.Decision(action.astype(jnp.int32), weights)

    return players.Agent("takes wins", act)


if __name__ == "__main__":
    game = azjax.make("tic_tac_toe")
    entrants = [
        players.search_agent(game, PUCT(num_simulations=50), open_lines(game), name="open lines"),
        takes_wins(game),
        players.random_agent(game),
    ]
    *_, matches = arena.round_robin(game, entrants, 1000, jax.random.key(0))
    for match in matches:
        first, second = match.moving_first, match.moving_second
        won, drawn = first.wins + second.wins, first.draws + second.draws
        print(f"{match.first} - {match.second}: {won} won, {drawn} drawn of 1,000")
