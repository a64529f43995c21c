"""The loop that plays a batch of games between two players, compiled or on the host."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import Game, State, play, where
from azjax.games.hashing import mix
from azjax.players import Agent


@functools.lru_cache(maxsize=64)
def make_match(game: Game, first: Agent, second: Agent) -> Callable:
    """Builds `(params, key, seat, opening numbers, states) -> games`."""
    traceable = first.traceable and second.traceable
    agents = [first, second] if traceable else [_compiled(first), _compiled(second)]
    loop = jax.lax.while_loop if traceable else _while_on_host
    cond = jax.lax.cond if traceable else _cond_on_host

    def is_unfinished(now: _Play) -> jax.Array:
        return (now.ply < game.max_plies) & jnp.any(~jax.vmap(game.is_over)(now.states))

    def match(params, key, seat, numbers, states):
        move = functools.partial(_move, game, agents, cond, params, key, seat)
        outcomes = jnp.zeros(len(numbers), jnp.float32)
        digests = mix(jnp.zeros((len(numbers), 2), jnp.uint32), numbers)
        plies = jnp.zeros(len(numbers), jnp.int32)
        actions = jnp.full((game.max_plies, len(numbers)), -1, jnp.int32)
        start = _Play(jnp.int32(0), states, outcomes, plies, digests, actions)
        end = loop(is_unfinished, move, start)
        over = jax.vmap(game.is_over)(end.states)
        return end.outcomes.astype(jnp.int8), end.plies, end.digests, end.actions.T, over

    return jax.jit(match) if traceable else match


class _Play(NamedTuple):
    """Games in progress; leaves are `[B, ...]`, except `ply []` and `actions [T, B]`."""

    ply: jax.Array
    states: State
    outcomes: jax.Array
    plies: jax.Array
    digests: jax.Array
    actions: jax.Array


def _move(game: Game, agents, cond, params, key, seat, now: _Play) -> _Play:
    """Makes one move in every unfinished game, each by the player whose turn it is."""
    live = ~jax.vmap(game.is_over)(now.states)
    mine = jax.vmap(game.player)(now.states).astype(jnp.int32) == seat
    keys = jax.random.split(jax.random.fold_in(key, now.ply))
    actions = [
        _choose(cond, agents[i], jnp.any(live & turn), params[i], keys[i], now.states)
        for i, turn in enumerate((mine, ~mine))
    ]
    action = jnp.where(mine, *actions)
    step = jax.vmap(functools.partial(play, game))(now.states, action)
    reward = jnp.where(live, jnp.where(mine, step.reward, -step.reward), 0.0)
    return _Play(
        ply=now.ply + 1,
        states=where(live, step.state, now.states),
        outcomes=now.outcomes + reward,
        plies=now.plies + live.astype(jnp.int32),
        digests=jnp.where(live[:, None], mix(now.digests, action), now.digests),
        actions=now.actions.at[now.ply].set(jnp.where(live, action, -1)),
    )


def _choose(cond, agent: Agent, needed, params, key, states):
    """Returns a player's actions `int32 [B]`; calls the player only if it moves in some game."""

    def act(states):
        return agent.act(params, key, states).action

    def skip(states):
        return jnp.zeros(jax.tree.leaves(states)[0].shape[0], jnp.int32)

    return cond(needed, act, skip, states)


def _compiled(agent: Agent) -> Agent:
    """Jits the function of a player, for a loop on the host."""
    return agent._replace(act=jax.jit(agent.act)) if agent.traceable else agent


def _cond_on_host(condition, on_true, on_false, value):
    """Replaces `lax.cond` in a loop on the host, where `lax.cond` would compile in every ply."""
    return on_true(value) if condition else on_false(value)


def _while_on_host(condition, body, value):
    while condition(value):
        value = body(value)
    return value
