"""Backgammon against the rules of pgx."""

import jax
import jax.numpy as jnp
import numpy as np
import pgx

from azjax import games
from azjax.games.base import init_batch, random_action, where

PAIRS = [(high, low) for high in range(6) for low in range(high + 1)]
# How many moves a throw has with each die.
THROWS = np.stack([np.bincount(pair, minlength=6) << (pair[0] == pair[1]) for pair in PAIRS])

MOST = 30  # Of 15 checkers by two dice.


def test_backgammon_has_the_same_rules():
    """With the same throws. That both dice must be played if possible follows from pgx's moves."""
    game, env = games.make("backgammon"), pgx.make("backgammon")
    size, plies = 24, 200
    sources = jnp.arange(150).reshape(25, 6)
    theirs_of = jnp.append((26 - sources // 6 - 1) * 6 + sources % 6, 0)  # Also the pass.
    no_key = jax.random.key(0)

    def dice(state):
        return state.observation[28:]

    def moves(state):  # By point, from the ace point on, and die.
        return state.legal_action_mask.reshape(26, 6)[:0:-1] & ~state.terminated

    def allowed(state):
        """The moves of pgx that the rules allow."""
        single = moves(state)
        (tried,) = jnp.nonzero(single.ravel(), size=MOST, fill_value=0)
        after = jax.vmap(lambda action: env.step(state, action, no_key))(theirs_of[tried])
        same = ~after.terminated & (after.current_player == state.current_player)
        goes_on = same & jnp.any(jax.vmap(moves)(after), axis=(1, 2))
        continues = jnp.zeros(150, bool).at[tried].max(goes_on).reshape(25, 6)
        largest = jnp.max(jnp.where(jnp.any(single, axis=0), jnp.arange(6), 0))
        forced = jnp.where(jnp.any(single & continues), continues, jnp.arange(6) == largest)
        return single & (forced | (jnp.sum(dice(state) > 0) < 2))

    def checkers(state):
        board = state.observation[:28]
        points, (bar, other_bar, off, other_off) = board[:24], board[24:]
        own = jnp.concatenate([off[None], jnp.maximum(points[::-1], 0), bar[None]])
        other = [-other_off[None], jnp.maximum(-points, 0), -other_bar[None]]
        return jnp.stack([own, jnp.concatenate(other)])

    @jax.jit
    @jax.vmap
    def advance(ours, theirs, key):
        """Compares positions, then plays a move and, if the turn ends, what pgx throws."""
        key_move, key_throw = jax.random.split(key)
        seen = jnp.where(ours.player == 0, ours.checkers, ours.checkers[::-1])
        same = jnp.all(seen == checkers(theirs)) & jnp.all(ours.left == dice(theirs))
        legal = game.legal_actions(ours)[:150].reshape(25, 6)
        same &= jnp.all(legal == allowed(theirs))
        action = random_action(game, key_move, ours)
        made = game.step(ours, action)[0]
        then = env.step(theirs, theirs_of[action], key_throw)
        ends = jnp.any(game.chance(made) > 0)
        waits = ends & (then.current_player == theirs.current_player)  # For an empty move.
        same &= ~waits | ~jnp.any(moves(then))
        then = where(waits, env.step(then, 0, key_throw), then)
        throw = jnp.argmax(jnp.all(dice(then) == THROWS, axis=1))
        made = where(ends, game.step(made, throw)[0], made)
        return made, then, same & (game.is_over(made) == then.terminated)

    theirs = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), size))
    throws = [np.flatnonzero((d == THROWS).all(axis=1))[0] for d in theirs.observation[:, 28:]]
    ours = jax.vmap(game.step)(init_batch(game, size), jnp.array(throws))[0]
    compared, over = 0, np.zeros(size, bool)
    for ply in range(plies):
        keys = jax.random.split(jax.random.key(ply + 1), size)
        ours, theirs, same = advance(ours, theirs, keys)
        assert (np.asarray(same) | over).all()
        compared += (~over).sum()
        over = np.asarray(theirs.terminated)
    assert compared > 3000 and over.any()
