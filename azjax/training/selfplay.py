"""Self-play on the device: every game of a batch searches, moves and restarts in one scan."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax._settings import MOST, check_range, check_types
from azjax.games.base import Game, State, batch_keys, check_batch, play, random_action, where
from azjax.search import Search, SearchResult
from azjax.training.positions import Archive, draw

_CPU_GAMES = 256  # The search trees of that many games fit into the cache of a core.
_RESTARTS = 8  # Of a group of games, a part as large as this starts anew together.
_MOST_PLIES = 1_000_000


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """How games are generated."""

    games: int = 1024
    """Games played in parallel, over all devices. AlphaZero: 5,000 processes."""
    games_at_once: int = 0
    """Games that a device plays together, the others wait their turn: less memory, and data
    that stay in the cache. 0: 256 on CPUs, all elsewhere; `config.make_parts` chooses."""
    unroll_length: int = 8
    """Moves that every game makes in one iteration."""
    carry_over: bool = True
    """Whether games that are not over go on in the next iteration, or all games begin anew in each.
    Then the search's value stands for the rest of the games that are cut off."""
    opening_share: float = 0.9
    """Share of games that start with random moves. AlphaZero: 0."""
    opening_plies: int = 8
    """Largest number of random opening moves; each number from 0 is equally likely."""
    archive: int = 0
    """Places for positions met, from which games may begin; see `azjax.training.positions`.
    AlphaZero: 0."""
    archive_share: float = 0.5
    """Share of the games with an opening that begin from the archive instead."""
    temperature: float = 1.0
    """PUCT: moves are drawn from visits ** (1 / temperature). AlphaZero: 1."""
    temperature_plies: int = 30
    """PUCT: from this ply on the most visited move is played. AlphaZero: 30."""

    def __post_init__(self):
        check_types("selfplay", self)
        check_range("selfplay", self, "games", 1)
        check_range("selfplay", self, "unroll_length", 1, _MOST_PLIES)
        check_range("selfplay", self, "opening_plies", 0, _MOST_PLIES)
        check_range("selfplay", self, "games_at_once temperature_plies temperature", 0)
        check_range("selfplay", self, "archive", 0, MOST)
        check_range("selfplay", self, "opening_share archive_share", 0, 1)


class Games(NamedTuple):
    """The games in flight.

    Attributes:
      states: the positions, every leaf `[B, ...]`; none is finished.
      ply: `int32 [B]`, moves made in each game, the opening's included.
    """

    states: State
    ply: jax.Array


class Transition(NamedTuple):
    """One searched move. Stacked by `unroll` to `[T, B, ...]`.

    Attributes:
      planes: `bool` or `float32 [H, W, C]`, the observation before the move.
      legal: `bool [A]`.
      action_weights: `float32 [A]`, the search's policy.
      root_value: `float32 []`, what that policy is worth by the search, for the player to move.
      action: `int32 []`, the move made.
      reward: `float32 []`, to the player who moved.
      discount: `float32 []`, see `game.Step`; 0 where the game ended with this move.
      extra: what `note` of `unroll` kept of the search; nothing by default.
      met: `Games [2, ...]`, what goes into the archive, if there is one: the game before the move,
        and the same after a random move, which nobody may ever make otherwise.
    """

    planes: jax.Array
    legal: jax.Array
    action_weights: jax.Array
    root_value: jax.Array
    action: jax.Array
    reward: jax.Array
    discount: jax.Array
    extra: Any = ()
    met: Any = ()


def note_nothing(result: SearchResult) -> Any:
    """Keeps nothing of a search beside its policy and value."""
    del result
    return ()


def start_games(
    config: SelfPlayConfig, game: Game, keys: jax.Array, archive: Archive | None = None
) -> Games:
    """Starts one game for each of `keys [B]`, random openings included.

    The entries of the archive, if there is one, are `Games`.
    """
    keys = batch_keys(keys)
    return jax.vmap(lambda key: _start(config, game, archive, key))(keys)


def _start(config: SelfPlayConfig, game: Game, archive: Archive | None, key: jax.Array) -> Games:
    """Starts one game from the archive, or with random moves, none of which ends it."""
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


def unroll(
    config: SelfPlayConfig,
    game: Game,
    encoding: str,
    search: Search,
    params: Any,
    keys: jax.Array,
    games: Games,
    note: Callable[[SearchResult], Any] = note_nothing,
    archive: Archive | None = None,
) -> tuple[Games, Transition]:
    """Plays `config.unroll_length` moves in every game; finished games restart in place.

    Games are played in groups of `config.games_at_once`, one group after the other; 0: all at once.

    Args:
      config: lengths, openings and temperature.
      game: the rules.
      encoding: of the recorded planes.
      search: from `search.make_search`.
      params: for the search's evaluator.
      keys: one, or `[B]`, one per game, so that a game does not depend on the batch around it.
      games: the games in flight.
      note: `SearchResult -> extra`, what else to keep of each search; leaves `[B, ...]`.
      archive: of `Games`, which other ones may begin from; None for none.

    Returns:
      The games in flight afterwards, and the moves, `[T, B, ...]`.
    """
    keys = batch_keys(keys, check_batch(game, games.states))
    size = group_size(config, len(keys))
    play_group = functools.partial(
        _unroll_group, config, game, encoding, search, note, archive, params
    )
    if size == len(keys):
        return play_group((keys, games))
    shape = len(keys) // size, size  # Not -1: some games have leaves without elements.
    groups = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), (keys, games))
    games, transitions = jax.lax.map(play_group, groups)
    games = jax.tree.map(jnp.concatenate, games)
    return games, jax.tree.map(lambda leaf: jnp.concatenate(leaf, axis=1), transitions)


def choose_games_at_once(config: SelfPlayConfig, platform: str) -> SelfPlayConfig:
    """Returns the settings with `games_at_once` chosen for a platform where it is 0."""
    if config.games_at_once or platform != "cpu":
        return config
    return dataclasses.replace(config, games_at_once=_CPU_GAMES)


def group_size(config: SelfPlayConfig, games: int) -> int:
    """The number of games that one device plays together, of those it has.

    Groups are of one size and as large as `config.games_at_once` allows. Where that is 0, or the
    number of games has no divisor near it, they are played all at once.
    """
    limit = config.games_at_once or games
    small = [size for size in range(1, math.isqrt(games) + 1) if games % size == 0]
    size = max(size for least in small for size in (least, games // least) if size <= limit)
    return size if 4 * size >= limit else games


def _unroll_group(
    config, game, encoding, search, note, archive, params, group
) -> tuple[Games, Transition]:
    """`unroll` for games that are played together, `(keys, games)`."""
    purposes = 2 if archive is None else 3
    keys = jax.vmap(lambda key: jax.random.split(key, (config.unroll_length, purposes)))(group[0])

    def move(games, key):
        temperature = jnp.where(
            games.ply < config.temperature_plies, jnp.float32(config.temperature), 0.0
        )
        result = search(params, key[:, 0], games.states, temperature, True)
        step = jax.vmap(lambda s, a: play(game, s, a))(games.states, result.action)
        transition = Transition(
            planes=jax.vmap(lambda s: game.observe(s, encoding))(games.states),
            legal=jax.vmap(game.legal_actions)(games.states),
            action_weights=result.action_weights,
            root_value=result.policy_value,
            action=result.action,
            reward=step.reward,
            discount=step.discount,
            extra=note(result),
            met=() if archive is None else _meet(game, key[:, 2], games),
        )
        over = jax.vmap(game.is_over)(step.state)
        moved = Games(step.state, games.ply + 1)
        return _restart(config, game, archive, key[:, 1], over, moved), transition

    return jax.lax.scan(move, group[1], jnp.swapaxes(keys, 0, 1))


def _meet(game, keys, games) -> Games:
    """Returns games `[B, 2, ...]`: as they are, and after a random move if they go on then."""

    def wander(key, one):
        state = game.step(one.states, random_action(game, key, one.states))[0]
        moved = where(game.is_over(state), one, Games(state, one.ply + 1))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), one, moved)

    return jax.vmap(wander)(keys, games)


def _restart(config, game, archive, keys, over, games) -> Games:
    """Starts those games anew that are over, a few together until all of them are."""
    together = -(-len(keys) // _RESTARTS)
    total = jnp.sum(over, dtype=jnp.int32)
    finished = jnp.pad(jnp.argsort(~over), (0, together))  # Where they are, and then the others.

    def restart(carry):
        games, begun = carry
        which = jax.lax.dynamic_slice(finished, (begun,), (together,))
        fresh = start_games(config, game, keys[which], archive)
        which = jnp.where(begun + jnp.arange(together) < total, which, len(keys))
        games = jax.tree.map(lambda a, b: a.at[which].set(b, mode="drop"), games, fresh)
        return games, begun + together

    return jax.lax.while_loop(lambda carry: carry[1] < total, restart, (games, jnp.int32(0)))[0]
