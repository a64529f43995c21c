"""Self-play on the device: a batch of games searches, moves and restarts in one scan."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import Game, batch_keys, check_batch, play
from azjax.search import Search, SearchResult
from azjax.training.positions import Archive
from azjax.training.starts import Games, SelfPlayConfig, new_starts, restart, start_games

_CPU_GAMES = 256  # With few simulations, the trees of this many games can fit in a core's cache.


class Transition(NamedTuple):
    """One searched move. Stacked by `unroll` to `[T, B, ...]`.

    Attributes:
      planes: `bool` or `float32 [H, W, C]`, the observation before the move.
      legal: `bool [A]`.
      action_weights: `float32 [A]`, the search's policy.
      root_value: `float32 []`, the value of that policy (`SearchResult.policy_value`), for the
        player to move.
      action: `int32 []`, the move made.
      reward: `float32 []`, to the player who moved.
      discount: `float32 []`, see `games.base.Step`; 0 if the move ended the game.
      extra: what `note`, an argument of `unroll`, returns; empty by default.
      new_starts: `Games [2, ...]` for the position buffer, if there is one: the game before this
        move, and the same game after a random move instead.
    """

    planes: jax.Array  # [H, W, C]
    legal: jax.Array  # bool [A]
    action_weights: jax.Array  # float32 [A]
    root_value: jax.Array  # float32 []
    action: jax.Array  # int32 []
    reward: jax.Array  # float32 []
    discount: jax.Array  # float32 []
    extra: Any = ()
    new_starts: Any = ()  # [2, ...]


def no_extra(result: SearchResult) -> Any:
    """Records nothing about a search except its policy and value."""
    del result
    return ()


def unroll(
    config: SelfPlayConfig,
    game: Game,
    encoding: str,
    search: Search,
    params: Any,
    keys: jax.Array,
    games: Games,
    note: Callable[[SearchResult], Any] = no_extra,
    archive: Archive | None = None,
) -> tuple[Games, Transition]:
    """Plays `config.unroll_length` moves in every game; finished games restart in place.

    Args:
      config: lengths, openings, temperature, and the size of groups of games.
      game: the rules.
      encoding: the encoding of the recorded planes.
      search: from `search.make_search`.
      params: parameters for the evaluator of the search.
      keys: one key, or `[B]`, one per game, so that a game does not depend on the others.
      games: the games in flight.
      note: `SearchResult -> extra`, further data to record about each search; leaves `[B, ...]`.
      archive: position buffer of `Games` that new games may start from.

    Returns:
      The games in flight afterwards, and the moves `[T, B, ...]`.
    """
    start = functools.partial(start_games, config, game, archive=archive)
    purposes = 2 if archive is None else 3

    def move(games: Games, keys: jax.Array) -> tuple[Games, Transition]:
        """Makes one move in each game; keys are `[B, purposes]`: search, restart, archive."""
        planes = jax.vmap(lambda state: game.observe(state, encoding))(games.states)
        is_early = games.ply < config.temperature_plies
        temperature = jnp.where(is_early, jnp.float32(config.temperature), 0.0)
        result = search(params, keys[:, 0], games.states, temperature, add_noise=True)
        step = jax.vmap(functools.partial(play, game))(games.states, result.action)
        transition = Transition(
            planes=planes,
            legal=jax.vmap(game.legal_actions)(games.states),
            action_weights=result.action_weights,
            root_value=result.policy_value,
            action=result.action,
            reward=step.reward,
            discount=step.discount,
            extra=note(result),
            new_starts=() if archive is None else new_starts(game, keys[:, 2], games),
        )
        over, moved = jax.vmap(game.is_over)(step.state), Games(step.state, games.ply + 1)
        return restart(start, keys[:, 1], over, moved), transition

    def play_group(group: tuple[jax.Array, Games]) -> tuple[Games, Transition]:
        split = functools.partial(jax.random.split, num=(config.unroll_length, purposes))
        return jax.lax.scan(move, group[1], jnp.swapaxes(jax.vmap(split)(group[0]), 0, 1))

    keys = batch_keys(keys, check_batch(game, games.states))
    return _in_groups(play_group, group_size(config, len(keys)), keys, games)


def _in_groups(
    play_group: Callable[[Any], tuple[Games, Transition]], size: int, keys: jax.Array, games: Games
) -> tuple[Games, Transition]:
    """Plays games in groups of equal size, one group after another."""
    if size == len(keys):
        return play_group((keys, games))
    shape = len(keys) // size, size  # Not -1: some games have leaves without elements.
    groups = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), (keys, games))
    games, transitions = jax.lax.map(play_group, groups)
    games = jax.tree.map(jnp.concatenate, games)
    return games, jax.tree.map(lambda leaf: jnp.concatenate(leaf, axis=1), transitions)


def choose_games_at_once(config: SelfPlayConfig, platform: str) -> SelfPlayConfig:
    """Replaces a `games_at_once` of 0 with 256 on CPUs; elsewhere, 0 means all games."""
    if config.games_at_once or platform != "cpu":
        return config
    return dataclasses.replace(config, games_at_once=_CPU_GAMES)


def group_size(config: SelfPlayConfig, games: int) -> int:
    """Returns how many of its `games` a device plays together.

    This is the largest divisor of `games` up to `config.games_at_once`. All games are played
    together if `games_at_once` is 0, or if the divisor is below a quarter of `games_at_once`.
    """
    limit = config.games_at_once or games
    small = [size for size in range(1, math.isqrt(games) + 1) if games % size == 0]
    size = max(size for least in small for size in (least, games // least) if size <= limit)
    return size if 4 * size >= limit else games
