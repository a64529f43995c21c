"""Starts of self-play games, and restarts of finished ones."""

import dataclasses
from collections.abc import Callable
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

from azjax._settings import Count, Fraction, NonNegative, Positive, Range, check
from azjax.games.base import Game, State, batch_keys, play, random_action, where
from azjax.training.positions import Archive, draw

_RESTARTS = 8  # Finished games restart in chunks of 1/8 of the group.
_MOST_PLIES = 1_000_000


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """Settings of self-play."""

    games: Positive = 1024
    """Games played in parallel, over all devices. AlphaZero: 5,000 processes."""
    games_at_once: Count = 0
    """Games in a group. A device plays group after group, to save memory and fit the cache.
    0: 256 on CPUs, all elsewhere; `config.make_parts` chooses."""
    unroll_length: Annotated[int, Range(1, _MOST_PLIES)] = 8
    """Moves that every game makes in one iteration."""
    carry_over: bool = True
    """Whether unfinished games continue in the next iteration. If not, all games restart in each
    iteration, and cut-off games are bootstrapped with the value of the search."""
    opening_share: Fraction = 0.9
    """Fraction of games that start with random moves. AlphaZero: 0."""
    opening_plies: Annotated[int, Range(0, _MOST_PLIES)] = 8
    """Maximum number of random opening moves; the number is uniform from 0."""
    archive: Count = 0
    """Buckets of the position buffer, from which games may start; see `azjax.training.positions`.
    AlphaZero: 0."""
    archive_share: Fraction = 0.5
    """Of the games with random openings, the fraction that start from the position buffer
    instead."""
    temperature: NonNegative = 1.0
    """PUCT: moves are sampled from visits ** (1 / temperature). AlphaZero: 1."""
    temperature_plies: Count = 30
    """PUCT: from this ply on, the most visited move is played. AlphaZero: 30."""

    def __post_init__(self):
        check("selfplay", self)


class Games(NamedTuple):
    """The games in flight.

    Attributes:
      states: the positions, every leaf `[B, ...]`; none is finished.
      ply: `int32 [B]`, number of moves made, including the opening.
    """

    states: State  # [B, ...]
    ply: jax.Array  # int32 [B]


def start_games(
    config: SelfPlayConfig, game: Game, keys: jax.Array, archive: Archive | None = None
) -> Games:
    """Starts a game for each of `keys [B]`, with a random opening or from a buffer of `Games`."""
    keys = batch_keys(keys)
    return jax.vmap(lambda key: _start(config, game, archive, key))(keys)


def _start(config: SelfPlayConfig, game: Game, archive: Archive | None, key: jax.Array) -> Games:
    """Starts a game from the position buffer, or with random moves that do not end it."""
    key_archive = key
    if archive is not None:
        key, key_archive = jax.random.split(key)
    uniform = jax.random.uniform(key, (2 + config.opening_plies * game.num_actions,), jnp.float32)
    wanted = jnp.floor(uniform[0] * (config.opening_plies + 1)).astype(jnp.int32)
    wanted = jnp.where(uniform[1] < config.opening_share, wanted, 0)

    def move(state, inputs):
        ply, scores = inputs
        action = jnp.argmax(jnp.where(game.legal_actions(state), scores, -1.0))
        step = play(game, state, action)
        goes_on = (ply < wanted) & ~game.is_over(step.state)
        return where(goes_on, step.state, state), goes_on

    scores = uniform[2:].reshape(config.opening_plies, game.num_actions)
    state, moved = jax.lax.scan(
        move, game.init(), (jnp.arange(config.opening_plies, dtype=jnp.int32), scores)
    )
    started = Games(state, jnp.sum(moved, dtype=jnp.int32))
    if archive is None:
        return started
    kept, found = draw(archive, jax.random.uniform(key_archive, (), jnp.float32))
    found &= uniform[1] < config.opening_share * config.archive_share
    return where(found, kept, started)


def restart(
    start: Callable[[jax.Array], Games], keys: jax.Array, over: jax.Array, games: Games
) -> Games:
    """Replaces finished games in chunks, so the cost grows with their number.

    Args:
      start: `keys [K] -> Games [K]`.
      keys: `[B]`.
      over: `bool [B]`, the games to replace.
      games: `[B]`.
    """
    together = -(-len(keys) // _RESTARTS)
    total = jnp.sum(over, dtype=jnp.int32)
    order = jnp.pad(jnp.argsort(~over), (0, together))  # Finished games first.

    def replace(carry):
        games, done = carry
        rows = jax.lax.dynamic_slice(order, (done,), (together,))
        fresh = start(keys[rows])
        rows = jnp.where(done + jnp.arange(together) < total, rows, len(keys))
        games = jax.tree.map(lambda a, b: a.at[rows].set(b, mode="drop"), games, fresh)
        return games, done + together

    return jax.lax.while_loop(lambda carry: carry[1] < total, replace, (games, jnp.int32(0)))[0]


def new_starts(game: Game, keys: jax.Array, games: Games) -> Games:
    """Returns two starts for each game, `[B, 2, ...]`: the game, and the game after a random move.

    If the random move ends the game, both are the unchanged game.
    """

    def explore(key, one):
        state = game.step(one.states, random_action(game, key, one.states))[0]
        moved = where(game.is_over(state), one, Games(state, one.ply + 1))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), one, moved)

    return jax.vmap(explore)(keys, games)
