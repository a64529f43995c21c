"""Self-play on the device: a batch of games searches, moves and restarts in one scan."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import Game, State, batch_keys, check_batch, play, random_action, where
from azjax.networks.base import Variables
from azjax.search import Tree
from azjax.search.make import default_engine
from azjax.training import effort
from azjax.training.archive import Archive, draw
from azjax.training.parts import Parts, SelfPlayConfig
from azjax.training.targets import Transition


class Games(NamedTuple):
    """The games in flight; none is finished."""

    states: State  # [B, ...], the positions.
    ply: jax.Array  # int32 [B], number of moves made, including the opening.


def self_play(
    parts: Parts,
    variables: Variables,
    keys: jax.Array,
    games: Games,
    archive: Archive | None = None,
    schedule: jax.Array | None = None,
) -> tuple[Games, Transition]:
    """Plays the moves of one iteration in every game; finished games restart in place.

    Keys are one, or `[B]`, one per game, so that a game does not depend on the others. Without
    `selfplay.carry_over`, new games replace the given ones. New games may start from the archive.

    `schedule` says which moves have a full search; by default the first ones.

    Returns:
      The games in flight afterwards, and the moves `[T, B, ...]`.
    """
    config, game = parts.selfplay, parts.game
    keys = batch_keys(keys, check_batch(game, games.states))
    start = functools.partial(start_games, config, game, archive=archive)
    if not config.carry_over:
        keys, first_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
        games = start(first_keys)
    search = effort.make_searches(parts, parts.network.fold(variables))
    purposes = 2 if archive is None else 3
    if schedule is None:
        schedule = effort.first_moves(config)

    def temperatures(games: Games) -> jax.Array:
        is_early = games.ply < config.temperature_plies
        return jnp.where(is_early, jnp.float32(config.temperature), 0.0)

    def move(carry: tuple[Games, Tree | None], inputs: tuple[jax.Array, jax.Array, Games | None]):
        """Makes one move in each game; keys are `[B, purposes]`: search, restart, archive.

        `fresh` replaces games that end; if it is None, `start` makes new ones.
        """
        (games, tree), (keys, is_full, fresh) = carry, inputs
        planes = jax.vmap(lambda state: game.observe(state, parts.network.encoding))(games.states)
        found = search(is_full, keys[:, 0], games.states, temperatures(games), tree)
        step = jax.vmap(functools.partial(play, game))(games.states, found.action)
        over = jax.vmap(game.is_over)(step.state)
        transition = Transition(
            planes=planes,
            legal=jax.vmap(game.legal_actions)(games.states),
            action_weights=found.action_weights,
            root_value=found.root_value,
            action=found.action,
            reward=step.reward,
            discount=step.discount,
            extra=found.extra,
            new_starts=() if archive is None else new_starts(game, keys[:, 2], games),
        )
        games = Games(step.state, games.ply + 1)
        if fresh is None:
            games = restart(start, keys[:, 1], over, games)
        else:
            games = jax.vmap(where)(over, fresh, games)
        return (games, found.tree), transition

    def play_group(group: tuple[jax.Array, Games]) -> tuple[Games, Transition]:
        split = functools.partial(jax.random.split, num=(config.unroll_length, purposes))
        keys, games = jnp.swapaxes(jax.vmap(split)(group[0]), 0, 1), group[1]
        # On GPUs, no loop of unknown length: new games for all moves, although few are needed.
        engine = config.engine or default_engine(jax.default_backend())
        fresh = jax.vmap(start)(keys[:, :, 1]) if engine == "paths" else None
        given = schedule[0], keys[0, :, 0], games.states, temperatures(games)
        tree = effort.first_tree(config, search, *given)
        (games, _), transitions = jax.lax.scan(move, (games, tree), (keys, schedule, fresh))
        return games, transitions

    size = group_size(config, len(keys))
    if size == len(keys):
        return play_group((keys, games))
    shape = len(keys) // size, size  # Not -1: some games have leaves without elements.
    groups = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), (keys, games))
    games, transitions = jax.lax.map(play_group, groups)
    games = jax.tree.map(jnp.concatenate, games)
    return games, jax.tree.map(lambda leaf: jnp.concatenate(leaf, axis=1), transitions)


def start_games(
    config: SelfPlayConfig, game: Game, keys: jax.Array, archive: Archive | None = None
) -> Games:
    """Starts a game for each of `keys [B]`, with a random opening or from a buffer of `Games`."""
    return jax.vmap(functools.partial(_start, config, game, archive))(batch_keys(keys))


def _start(config: SelfPlayConfig, game: Game, archive: Archive | None, key: jax.Array) -> Games:
    """Starts a game from the position buffer, or with random moves that do not end it."""
    key_archive = key
    if archive is not None:
        key, key_archive = jax.random.split(key)
    # One draw: for the number of moves, for the share, and a score for every action of a move.
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
    """Replaces finished games, `over [B]`, by those that `start(keys [K])` returns."""
    # An opening costs up to `opening_plies` moves, and few games end at once: starting an eighth
    # of them together is enough for most moves, and the loop makes up for the others.
    together = -(-len(keys) // 8)
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


def group_size(config: SelfPlayConfig, games: int) -> int:
    """Returns how many of its `games` a device plays together.

    This is the largest divisor of `games` up to `config.games_at_once`. All games are played
    together if `games_at_once` is 0, or if the divisor is below a quarter of `games_at_once`.
    """
    limit = config.games_at_once or games
    small = [size for size in range(1, math.isqrt(games) + 1) if games % size == 0]
    size = max(size for least in small for size in (least, games // least) if size <= limit)
    return size if 4 * size >= limit else games
