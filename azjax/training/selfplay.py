"""Self-play on the device: a batch of games searches, moves and restarts in one scan.

`examples/alphazero.py` has it in 20 lines, for one game and without options.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import (
    Game,
    State,
    Step,
    batch_keys,
    check_batch,
    play,
    random_step,
    throw,
    where,
)
from azjax.networks.base import Variables
from azjax.search import make_search
from azjax.search.algorithm import split_each
from azjax.training.archive import Archive, draw
from azjax.training.parts import Parts, SelfPlayConfig
from azjax.training.targets import Transition, afterstate


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
) -> tuple[Games, Transition]:
    """Plays the moves `[T, B, ...]` of one iteration; finished games restart in place.

    `keys` is one key, or `[B]`, one per game: a game does not depend on the others. Without
    `selfplay.carry_over`, new games replace the given ones. New games may start from the archive.
    Returns the games in flight afterwards, and the moves.
    """
    config, game, encoding = parts.selfplay, parts.game, parts.network.encoding
    keys = batch_keys(keys, check_batch(game, games.states))
    start = functools.partial(start_games, config, game, archive=archive)
    if not config.carry_over:
        keys, keys_first = split_each(keys)
        games = start(keys_first)
    params = parts.network.fold(variables)
    search = make_search(parts.search, game, parts.evaluate, parts.grow)
    purposes = 2 + (archive is not None) + (game.chance is not None)

    def move(games: Games, keys: jax.Array) -> tuple[Games, Transition]:
        """Makes one move in each game; keys are `[purposes, B]`."""
        key_search, key_restart, *key_others = keys  # The others: for the archive, for the dice.
        states, early = games.states, games.ply < config.temperature_plies
        temperature = jnp.where(early, jnp.float32(config.temperature), 0.0)
        result = search(params, key_search, states, temperature, add_noise=True)
        moved = jax.vmap(functools.partial(play, game))(states, result.action)
        step = moved
        if game.chance is not None:
            dice = jax.vmap(jax.random.uniform)(key_others[-1])
            step = jax.vmap(functools.partial(throw, game))(dice, moved)
        transition = Transition(
            planes=jax.vmap(lambda state: game.observe(state, encoding))(states),
            legal=jax.vmap(game.legal_actions)(states),
            action_weights=result.action_weights,
            root_value=result.policy_value,
            action=result.action,
            reward=step.reward,
            discount=step.discount,
            extra=parts.targets.note(result),
            after=jax.vmap(functools.partial(afterstate, game, encoding))(moved),
            new_starts=() if archive is None else new_starts(game, key_others[0], games),
        )
        over = jax.vmap(game.is_over)(step.state)
        return restart(start, key_restart, over, Games(step.state, games.ply + 1)), transition

    def play_group(group: tuple[jax.Array, Games]) -> tuple[Games, Transition]:
        split = functools.partial(jax.random.split, num=(config.unroll_length, purposes))
        return jax.lax.scan(move, group[1], jnp.moveaxis(jax.vmap(split)(group[0]), 0, -1))

    return in_groups(play_group, group_size(config, len(keys)), keys, games)


def in_groups(
    play_group: Callable[..., tuple[Games, Transition]], size: int, keys: jax.Array, games: Games
) -> tuple[Games, Transition]:
    """Plays the games in groups of `size`, one group after the other."""
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
    """Starts a game for each of `keys [B]`, with a random opening or from the archive."""
    return jax.vmap(functools.partial(_start, config, game, archive))(batch_keys(keys))


def _start(config: SelfPlayConfig, game: Game, archive: Archive | None, key: jax.Array) -> Games:
    """Starts a game from the archive, or with a random opening."""
    if archive is None:
        return random_opening(config, game, key)[0]
    key, key_archive = jax.random.split(key)
    opened, choice = random_opening(config, game, key)
    kept, found = draw(archive, jax.random.uniform(key_archive, (), jnp.float32))
    found &= choice < config.opening_share * config.archive_share
    return where(found, kept, opened)


def random_opening(config: SelfPlayConfig, game: Game, key: jax.Array) -> tuple[Games, jax.Array]:
    """Starts a game with random moves that do not end it, or with none.

    Also returns the random number `float32 []` in [0, 1) that decides this.
    """
    # Random numbers: two that choose the opening, then for each ply one for every action and, in
    # games with chance, one for the dice that follow; the last one is for the dice at the start.
    plies, dice = config.opening_plies, int(game.chance is not None)
    columns = game.num_actions + dice
    end = 2 + plies * columns
    uniform = jax.random.uniform(key, (end + dice,), jnp.float32)
    length, choice = uniform[:2]
    rows, first_dice = uniform[2:end].reshape(plies, columns), uniform[-1]
    wanted = jnp.floor(length * (plies + 1)).astype(jnp.int32)
    wanted = jnp.where(choice < config.opening_share, wanted, 0)

    def move(state, inputs):
        ply, row = inputs
        legal = game.legal_actions(state)
        action = jnp.argmax(jnp.where(legal, row[: game.num_actions], -1.0))
        step = throw(game, row[-1], play(game, state, action))
        goes_on = (ply < wanted) & ~game.is_over(step.state)
        return where(goes_on, step.state, state), goes_on

    first = throw(game, first_dice, Step(game.init(), jnp.float32(0), jnp.float32(1)))
    state, moved = jax.lax.scan(move, first.state, (jnp.arange(plies, dtype=jnp.int32), rows))
    return Games(state, jnp.sum(moved, dtype=jnp.int32)), choice


def restart(
    start: Callable[[jax.Array], Games], keys: jax.Array, over: jax.Array, games: Games
) -> Games:
    """Returns `where(over, start(keys), games)`, but starts only the games that are needed."""
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
        state = random_step(game, key, one.states).state
        moved = where(game.is_over(state), one, Games(state, one.ply + 1))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), one, moved)

    return jax.vmap(explore)(keys, games)


def group_size(config: SelfPlayConfig, games: int) -> int:
    """Returns how many of its `games` a device plays together.

    This is the largest divisor of `games` up to `config.games_at_once`. All games are played
    together if `games_at_once` is 0, or if the divisor is below a quarter of `games_at_once`.
    """
    limit = min(config.games_at_once or games, games)
    size = next(size for size in range(limit, 0, -1) if games % size == 0)
    # In much smaller groups, batches would be too small for the device: a prime number of games is
    # divided by 1 only.
    return size if 4 * size >= limit else games
