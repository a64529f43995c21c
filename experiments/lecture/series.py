"""Series of games between a player with a memory and an opponent without one."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State, init_batch, play, where
from azjax.players import Agent
from experiments.lecture.persistent import PersistentPlayer


def play_series(
    game: Game,
    player: PersistentPlayer,
    opponent: Agent,
    num_games: int,
    num_series: int,
    key: jax.Array,
) -> np.ndarray:
    """Plays several series as one batch, each with a separate memory.

    The persistent player moves first in every game. The players must move in turn.

    Returns:
      `int8 [num_games, num_series]`, 1 = won by the persistent player, 0 = drawn, -1 = lost.
    """
    memory, outcomes = player.init_memory(num_series), []
    play_once = _compile(game, player.learn, opponent.act)
    for number in range(num_games):
        key_game = jax.random.fold_in(key, number)
        outcome, memory = play_once(opponent.params, key_game, memory)
        outcomes.append(outcome)
    return np.stack(jax.device_get(outcomes)).astype(np.int8)


class _Carry(NamedTuple):
    """One game of each series; leaves are `[B, ...]`."""

    ply: jax.Array
    states: State
    outcomes: jax.Array
    memory: Any


@functools.lru_cache(maxsize=64)
def _compile(game: Game, learn: Callable, act: Callable) -> Callable:
    """Builds `(params, key, memory) -> (outcomes [B], memory)`, which plays one game per series."""

    def move(params, key, now: _Carry) -> _Carry:
        live = ~jax.vmap(game.is_over)(now.states)
        persistent = jax.vmap(game.player)(now.states) == 0
        key_learn, key_act = jax.random.split(jax.random.fold_in(key, now.ply))

        def play_persistent(memory):
            decision, memory = learn(key_learn, now.states, memory)
            return decision.action, memory

        def play_reply(memory):
            return act(params, key_act, now.states).action, memory

        action, memory = jax.lax.cond(
            jnp.any(live & persistent), play_persistent, play_reply, now.memory
        )
        step = jax.vmap(functools.partial(play, game))(now.states, action)
        reward = jnp.where(live, jnp.where(persistent, step.reward, -step.reward), 0.0)
        states = where(live, step.state, now.states)
        return _Carry(now.ply + 1, states, now.outcomes + reward, memory)

    def is_live(now: _Carry):
        return jnp.any(~jax.vmap(game.is_over)(now.states))

    @functools.partial(jax.jit, donate_argnums=2)
    def play_once(params, key, memory):
        size = len(jax.tree.leaves(memory)[0])
        start = _Carry(jnp.int32(0), init_batch(game, size), jnp.zeros(size), memory)
        end = jax.lax.while_loop(is_live, functools.partial(move, params, key), start)
        return end.outcomes, end.memory

    return play_once
