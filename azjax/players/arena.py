"""The arena: compiled matches of thousands of games, played from both seats.

A player is an `Agent`, or an object with one as its attribute `agent`. In seat 0 or 1, it plays as
player 0 or 1 of the game. Results are counts of games; `statistics` computes intervals and Elo
from them.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import Positive, Range, checked
from azjax.games.base import (
    Game,
    State,
    check_batch,
    check_rewards,
    init_batch,
    is_chance,
    is_reward,
    play,
    random_action,
    random_step,
    where,
)
from azjax.games.rows import distinct, pack
from azjax.players import Agent, as_agent
from azjax.players.statistics import Ratings, fit

MOST_OPENINGS = 100_000
_DICE = 2**31 - 1  # Folded into the key of dice; no batch has this number.


class Results(NamedTuple):
    """Finished games, in the order in which they were played."""

    outcomes: np.ndarray  # `int8 [N]`, 1 = won by the first-named player, 0 = drawn, -1 = lost.
    openings: np.ndarray  # `int [N]`, the number of the opening.
    # `int32 [N, T]`, the moves after the opening, padded with -1; `T` is the game's `max_plies`.
    actions: np.ndarray


class Tally(NamedTuple):
    """Games counted for one player from one seat."""

    wins: int
    draws: int
    losses: int
    distinct: int  # The number of different games among them.


class Match(NamedTuple):
    """The result of a pairing."""

    first: str  # The name of the first-named player, whose wins are counted.
    second: str  # The name of the other player.
    moving_first: Tally  # Games in which the first-named player made the first move.
    moving_second: Tally  # Games in which the second-named player made the first move.
    # Whether both players are deterministic; more games would then only repeat these.
    deterministic: bool


def draw_openings(game: Game, key: jax.Array, count: int, plies: int) -> State:
    """Draws `count` different unfinished positions `[K, ...]`, each after `plies` random moves.

    There are fewer than `count` if no more were found.
    """
    checked("count", count, Annotated[int, Range(1, MOST_OPENINGS)])
    checked("plies", plies, Annotated[int, Range(0, game.max_plies - 1)])

    def draw(key):
        def move(state, key):
            return random_step(game, key, state).state, None

        return jax.lax.scan(move, game.init(), jax.random.split(key, plies))[0]

    keys = jax.random.split(key, max(64 * count, 4096))
    states = jax.device_get(jax.jit(jax.vmap(draw))(keys))
    over = np.asarray(jax.vmap(game.is_over)(states))
    different = distinct(pack(states))[0]
    chosen = different[~over[different]][:count]
    if not len(chosen):
        raise ValueError(
            f"all random games of {game.name} were over after {plies} moves: use fewer"
        )
    return jax.tree.map(lambda leaf: leaf[chosen], states)


def play_match(
    game: Game,
    first: Any,
    second: Any,
    num_games: int,
    key: jax.Array,
    openings: State | None = None,
) -> Match:
    """Plays half of the games from each seat, with the same dice if there are any.

    Without dice, two deterministic players play each opening only once from each seat.

    Args:
      game: the rules.
      first: the player whose wins are counted.
      second: the other player.
      num_games: the total, rounded up to play every opening equally often from each seat.
      key: for all randomness of the match.
      openings: positions to start from, `[K, ...]`; the starting position if None.
    """
    *_, match = _play_match(game, as_agent(first), as_agent(second), num_games, key, openings)
    return match


def _play_match(
    game: Game, first: Agent, second: Agent, num_games: int, key: jax.Array, openings: State | None
) -> Iterator[Match]:
    """Yields the result after each batch of games."""
    checked("num_games", num_games, Positive)
    count = 1 if openings is None else check_batch(game, openings)
    rounds = -(-num_games // (2 * count))
    deterministic = first.deterministic and second.deterministic and game.chance is None
    per_seat = count if deterministic else rounds * count
    played: tuple[list[Results], ...] = [], []
    key_dice = jax.random.fold_in(key, len(played))
    for seat, batches in enumerate(played):
        key_seat = jax.random.fold_in(key, seat)
        given = per_seat, (key_seat, key_dice), seat, openings
        for batch in _play_batches(game, first, second, *given):
            batches.append(batch)
            tallies = _count(played[0]), _count(played[1])
            yield Match(first.name, second.name, *tallies, deterministic)


def _count(batches: Sequence[Results]) -> Tally:
    if not batches:
        return Tally(0, 0, 0, 0)
    games = _join(batches)
    wins, draws, losses = (int((games.outcomes == value).sum()) for value in (1, 0, -1))
    different = np.unique(np.column_stack([games.openings, games.actions]), axis=0)
    return Tally(wins, draws, losses, len(different))


def _join(batches: Iterable[Results]) -> Results:
    return Results(*(np.concatenate(column) for column in zip(*batches, strict=True)))


def rate(matches: Sequence[Match]) -> Ratings:
    """Fits Elo ratings to the results of matches; see `statistics.fit`."""
    names = list(dict.fromkeys(name for match in matches for name in (match.first, match.second)))
    rows = []
    for match in matches:
        one, other = names.index(match.first), names.index(match.second)
        rows.append((one, other, match.moving_first[:3]))
        rows.append((other, one, match.moving_second[2::-1]))
    first, second, counts = (np.array(column) for column in zip(*rows, strict=True))
    return fit(names, first, second, counts)


def round_robin(
    game: Game,
    agents: Sequence[Any],
    num_games: int,
    key: jax.Array,
    openings: State | None = None,
) -> Iterator[list[Match]]:
    """Plays a match between each pair of players; see `play_match` for the arguments.

    Yields all matches so far after each batch of games; the last match may be incomplete.
    """
    agents = [as_agent(agent) for agent in agents]
    names = [agent.name for agent in agents]
    if len(names) < 2:
        raise ValueError(f"a tournament of {names} has no pairing: name 2 players or more")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two players are called {twice[0]}: give them different names")
    complete: list[Match] = []
    for i, pair in enumerate(itertools.combinations(agents, 2)):
        matches = complete
        for match in _play_match(game, *pair, num_games, jax.random.fold_in(key, i), openings):
            yield (matches := [*complete, match])
        complete = matches


def play_games(
    game: Game,
    first: Any,
    second: Any,
    num_games: int,
    key: jax.Array,
    seat: int = 0,
    openings: State | None = None,
    batch_size: int | None = None,
) -> Results:
    """Plays games with the players in fixed seats; see `play_match` for the other arguments.

    `first` is player 0 if `seat` is 0, and player 1 if it is 1. The openings are played in turn.
    `batch_size` games are played in parallel; if None, it depends on the sizes of the trees. The
    dice depend on the key only, not on the players.
    """
    keys = key, jax.random.fold_in(key, _DICE)
    given = game, as_agent(first), as_agent(second), num_games, keys, seat, openings, batch_size
    return _join(_play_batches(*given))


def _play_batches(
    game: Game,
    first: Agent,
    second: Agent,
    num_games: int,
    keys: tuple[jax.Array, jax.Array],
    seat: int,
    openings: State | None,
    batch_size: int | None = None,
) -> Iterator[Results]:
    """Yields the finished games of each batch of `play_games`; keys are for players and dice."""
    checked("num_games", num_games, Positive)
    openings = init_batch(game, 1) if openings is None else openings
    count = check_batch(game, openings)
    if bool(jnp.any(jax.vmap(game.is_over)(openings))):
        raise ValueError("an opening is a finished game: start from positions with a move left")
    size = batch_size or _batch_size(first, second, num_games)
    # Without the fields that do not change the compiled program.
    players = (agent._replace(name="", params=None, nodes=1) for agent in (first, second))
    match = _make_match(game, *players)
    for batch in range(-(-num_games // size)):
        rows = (np.arange(size) + batch * size) % count
        starts = jax.tree.map(lambda leaf: leaf[rows], openings)
        key_batch = jax.random.fold_in(keys[0], batch)
        numbers = jnp.int32(seat), jnp.int32(batch * size)
        params = first.params, second.params
        played = match(params, (key_batch, keys[1]), *numbers, starts)
        outcomes, actions, over = jax.device_get(played)
        if not np.all(over):
            raise ValueError(
                f"a game of {first.name} against {second.name} is not over after {game.max_plies} "
                f"moves, the max_plies of {game.name}: one of them plays illegal actions, or "
                "max_plies is too small"
            )
        check_rewards(game, ~np.isnan(outcomes))
        asked = slice(num_games - batch * size)
        yield Results(outcomes[asked].astype(np.int8), rows[asked], actions[asked])


def _batch_size(first: Agent, second: Agent, num_games: int) -> int:
    """Returns the number of games to play in parallel; batches have about equal sizes.

    The trees of a batch have at most 2**17 nodes. In games with few actions, these take little more
    memory than a CPU's cache has. If that leaves fewer than 32 games, a batch has up to 32 games
    and 2**22 nodes, which take up to a gigabyte in such games.
    """
    nodes = max(first.nodes, second.nodes)
    few = min(32, max(1, 2**22 // nodes))
    most = min(max(2**17 // nodes, few), 8192)
    return -(-num_games // -(-num_games // most))


class _Play(NamedTuple):
    """Games in progress; leaves are `[B, ...]`, except `ply []` and `actions [T, B]`."""

    ply: jax.Array
    throws: jax.Array  # Of dice, so far.
    states: State
    outcomes: jax.Array
    actions: jax.Array


@functools.lru_cache(maxsize=64)
def _make_match(game: Game, first: Agent, second: Agent) -> Callable:
    """Builds `(params, keys, seat, start, states) -> (outcomes, actions, over)`, compiled.

    The keys are one for the players and one for the dice; `start` is the first game's number.
    """

    def is_unfinished(now: _Play) -> jax.Array:
        return (now.ply < game.max_plies) & jnp.any(~jax.vmap(game.is_over)(now.states))

    def throw(key, number, throws, state):
        key = jax.random.fold_in(jax.random.fold_in(key, number), throws)
        return random_action(game, key, state)

    def match(params, keys, seat, start, states):
        key, key_dice = keys

        def move(now: _Play) -> _Play:
            live = ~jax.vmap(game.is_over)(now.states)
            waits = jax.vmap(functools.partial(is_chance, game))(now.states)
            mine = jax.vmap(game.player)(now.states).astype(jnp.int32) == seat
            keys = jax.random.split(jax.random.fold_in(key, now.ply))

            def choose(i, turn):  # A player is only called if it moves in some game.
                def act(states):
                    return (first, second)[i].act(params[i], keys[i], states).action

                def skip(_):
                    return jnp.zeros(len(turn), jnp.int32)

                return jax.lax.cond(jnp.any(live & turn & ~waits), act, skip, now.states)

            action = jnp.where(mine, choose(0, mine), choose(1, ~mine))
            if game.chance is not None:
                draw = jax.vmap(functools.partial(throw, key_dice))
                thrown = draw(start + jnp.arange(len(waits)), now.throws, now.states)
                action = jnp.where(waits, thrown, action)
            step = jax.vmap(functools.partial(play, game))(now.states, action)
            reward = jnp.where(live, jnp.where(mine, step.reward, -step.reward), 0.0)
            is_right = is_reward(reward, step.discount == 0)
            return _Play(
                ply=now.ply + 1,
                throws=now.throws + waits,
                states=where(live, step.state, now.states),
                outcomes=now.outcomes + jnp.where(is_right, reward, jnp.nan),
                actions=now.actions.at[now.ply].set(jnp.where(live, action, -1)),
            )

        count = check_batch(game, states)
        now = _Play(
            ply=jnp.int32(0),
            throws=jnp.zeros(count, jnp.int32),
            states=states,
            outcomes=jnp.zeros(count, jnp.float32),
            actions=jnp.full((game.max_plies, count), -1, jnp.int32),
        )
        now = jax.lax.while_loop(is_unfinished, move, now)
        over = jax.vmap(game.is_over)(now.states)
        return now.outcomes, now.actions.T, over

    return jax.jit(match)
